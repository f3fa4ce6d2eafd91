#include "serving/turns.h"

#include <string>

#include "tests/support/catch.h"

namespace petlab::serving {
namespace {

using std::chrono::milliseconds;

/// Connections 0 to 99 and a clock. `begun` lists the connections in the order in which they began.
struct Asking {
  Turns turns;
  Turns::Time now;
  std::string begun;
  char names[100] = {};

  void ask(int from, int to) {
    for (int i = from; i < to; ++i) {
      turns.ask(&names[i], now, [this, i] { begun += std::to_string(i) + " "; });
    }
  }
  void pass(milliseconds time) {
    now += time;
    turns.look(now);
  }
};

TEST_CASE("Few connections send at the same time, the others in the order in which they asked",
          "[serving]") {
  Asking a;
  REQUIRE(Turns::kAtOnce == 8);
  a.ask(0, 12);
  CHECK(a.begun == "0 1 2 3 4 5 6 7 ");
  a.turns.leave(&a.names[9], a.now);  // has no turn
  CHECK(a.begun == "0 1 2 3 4 5 6 7 ");
  a.turns.leave(&a.names[5], a.now);
  a.turns.leave(&a.names[0], a.now);
  CHECK(a.begun == "0 1 2 3 4 5 6 7 8 9 ");
  CHECK(a.turns.somebody_waits());
  for (const int i : {1, 2, 3}) a.turns.leave(&a.names[i], a.now);
  CHECK_FALSE(a.turns.somebody_waits());
  CHECK(a.begun == "0 1 2 3 4 5 6 7 8 9 10 11 ");
}

TEST_CASE("A connection that takes nothing is passed over, one that takes something is not",
          "[serving]") {
  Asking a;
  a.ask(0, 10);
  a.pass(Turns::kPatience - milliseconds(1));
  a.turns.took(&a.names[3], a.now);
  CHECK(a.begun == "0 1 2 3 4 5 6 7 ");
  a.pass(milliseconds(1));  // seven are passed over
  CHECK(a.begun == "0 1 2 3 4 5 6 7 8 9 ");
  a.ask(10, 20);  // connection 3 and the last two still have their turns
  CHECK(a.begun == "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 ");
  a.turns.leave(&a.names[0], a.now);  // was passed over, and finishes all the same
  CHECK(a.begun == "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 ");
}

TEST_CASE("A connection that keeps taking a little loses its turn after a while", "[serving]") {
  Asking a;
  a.ask(0, 9);
  const Turns::Time began = a.now;
  while (a.begun == "0 1 2 3 4 5 6 7 ") {
    for (int i = 0; i < 8; ++i) a.turns.took(&a.names[i], a.now);
    a.pass(milliseconds(1));
  }
  CHECK(a.now - began == Turns::kLongest);
  CHECK(a.begun == "0 1 2 3 4 5 6 7 8 ");
}

TEST_CASE("A forgotten connection never begins", "[serving]") {
  Asking a;
  a.ask(0, 10);
  a.turns.clear();
  a.turns.leave(&a.names[0], a.now);
  CHECK_FALSE(a.turns.somebody_waits());
  CHECK(a.begun == "0 1 2 3 4 5 6 7 ");
}

}  // namespace
}  // namespace petlab::serving
