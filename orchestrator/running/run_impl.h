#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "orchestrator/planning/plan.h"
#include "orchestrator/planning/schedule.h"
#include "orchestrator/records/ingest.h"
#include "orchestrator/recovery/adoption.h"
#include "orchestrator/recovery/recovery.h"
#include "orchestrator/running/best_metric.h"
#include "orchestrator/running/event_watch.h"
#include "orchestrator/running/run.h"
#include "protocol/trial_directory.h"

namespace petlab::orchestrator {

// The inside of Run, for run.cpp (start, loop, interrupts), run_turn.cpp (one turn of the loop) and
// the parts of that: run_claims.cpp, run_queue.cpp, run_shares.cpp.
class Run::Impl {
 public:
  using Clock = std::chrono::steady_clock;
  // What is known is committed no later than this after the commit before (docs/orchestrator.md).
  static constexpr std::chrono::milliseconds kGroup{10};
  // Workers in a row that ended before they began a trial stop what they have in common.
  static constexpr int kLaunchFailuresThatStop = 3;
  // Why an attempt ended that the user took out.
  static constexpr const char* kCancelled = "petlab cancel";

  Impl(boost::asio::io_context& loop, results::Store& store, Launcher& launcher,
       const sweeps::Sweep& sweep, const sweeps::Locations& locations, RunOptions options,
       RunObserver& observer);

  RunResult execute();
  void interrupt(int at_least);
  void finish();

 private:
  enum class Phase { running, finishing, stopping, killing };
  enum class Standing { settled, waiting, taken, elsewhere, left };  // left: for the next run

  struct Trial {
    const sweeps::SweepTrial* what = nullptr;
    TrialPlan plan;
    Standing standing = Standing::settled;
    bool cancelled = false;  // as the user had decided when this run looked last
    std::int64_t retried_after = 0;
    int unbegun = 0;  // workers in a row that ended before they began it, though it was their next
  };

  // Why this run ends a worker itself.
  enum class Verdict { none, timed_out, stalled, protocol, cancelled };

  // An attempt that this run has claimed and that is not over.
  struct Live {
    Live(protocol::TrialDirectory where, BestMetric its_best)
        : directory(std::move(where)), best(std::move(its_best)) {}
    protocol::TrialDirectory directory;
    results::AttemptRef attempt;
    results::NewAttempt begun;
    results::Launch launch;
    std::size_t trial = 0;
    std::string slot;
    std::list<Live>::iterator place;
    int watch = -1;
    std::filesystem::path resume_from;  // the checkpoint; empty: it begins anew
    bool vanished = false;              // that is there no more: the claim is taken back
    bool prepared = false;              // its directory is made
    bool launched = false;              // given to a worker
    bool gone = false;                  // and that has ended
    bool started = false;
    bool checkpointed = false;
    bool over = false;
    bool told_silent = false;
    Verdict verdict = Verdict::none;
    Clock::time_point began;  // launched, or at the front of its worker's line
    Clock::time_point heard;  // of its last event
    std::optional<protocol::Progress> progress;
    std::int64_t first_step = 0;    // before the first that this attempt made
    Clock::time_point started_at;   // it said that it has begun
    Clock::time_point progress_at;  // of the last progress
    BestMetric best;
    double device_memory_mib = 0;  // the most that was reported
    std::int64_t grew_at = 0;      // step of the last report of more
    bool settled = false;          // it has needed as much as it will
  };

  // A worker that has ended, with what it had not finished as far as was read by then.
  struct Gone {
    std::deque<Live*> given;
    WorkerEnd end;
    bool any_started = false;
    bool asked_to_stop = false;
    bool clean() const;
  };

  struct SlotState {
    std::string name;
    std::unique_ptr<Worker> worker;
    std::deque<Live*> given;  // the worker has them, in this order
    std::deque<Live*> ready;  // claimed, for a worker that takes one at a time
    std::optional<WorkerEnd> end;
    std::vector<Gone> gone;  // ended before, to be concluded in the next transaction
    std::string group;       // of the last trial given
    bool any_started = false;
    bool closing = false;
    bool asked_to_stop = false;
    Clock::time_point asked_at;          // closing or stopping since
    int launch_failures = 0;             // in a row
    int taken_away = 0;                  // in a row, before it began a trial
    Clock::time_point not_before;        // of the next launch
    bool broken = false;                 // stopped after three of them
    std::optional<double> mean_seconds;  // of a trial, with its overhead; absent: none is over yet
    int overs = 0;                       // trials that were over since last_over
    Clock::time_point last_over;
    std::int64_t granted_mib = 0;            // of a shared device, when the slot was taken
    bool all = false;                        // that was all that the device had
    bool whole = false;                      // nobody else may join
    std::optional<std::size_t> intended;     // the trial for which the slot was taken
    bool retired = false;                    // given back as soon as its worker is gone
    std::optional<std::int64_t> to_reserve;  // of its share, at the next tick: it could not be now
  };

  // An attempt of a dead orchestrator whose trial the sweep no longer has.
  struct Stray {
    results::AttemptFacts facts;
    std::string slot;
    std::unique_ptr<Worker> worker;
    std::optional<WorkerEnd> end;
  };

  // --- run.cpp
  void start();
  void plan_all();
  std::vector<results::TrialFacts> facts_of(const std::vector<std::size_t>& trials) const;
  void settle_plan(std::size_t trial, TrialPlan plan);
  bool bring_up_to_date(const std::vector<std::size_t>& trials,
                        const std::vector<results::TrialFacts>& facts,
                        const std::vector<TrialPlan>& plans);
  std::vector<TrialPlan> plans_of(const std::vector<std::size_t>& trials,
                                  const std::vector<results::TrialFacts>& facts,
                                  const PlanContext& how) const;
  void number_shapes();
  void note_facts(std::size_t trial, const results::TrialFacts& facts,
                  std::pair<double, int>& seconds);
  void look_elsewhere();
  Clock::time_point next_look_elsewhere() const;
  std::int64_t clear_up();
  void look_at_decisions();
  void decided(std::size_t trial, bool cancelled, std::int64_t retried_after);
  void cancel_taken(std::size_t trial);
  void go_to(Phase phase);
  void tick();
  void check_limits();
  void tell_of_silence(Live& front, Clock::time_point now);
  void tell_why_nothing_runs();
  bool finished() const;
  void wait_for_work();
  void end_workers_after_error() noexcept;
  RunStatus status() const;
  RunningTrial running_trial(const Live& live) const;
  BestMetric metric_of(std::size_t trial) const;
  void report(bool now);
  PlanContext context() const;

  // --- run_queue.cpp
  void log_launches();
  void record_noted(Live& live);
  void withdraw_waiting();
  void adopt_orphans();
  bool settle_without_worker(const results::AttemptFacts& attempt);
  void replan(std::size_t trial);
  void adopt(const results::AttemptFacts& facts, std::size_t trial);
  void adopt_stray(const results::AttemptFacts& facts);
  void conclude_strays();
  void release_orphans();

  // --- run_shares.cpp: several workers on a device
  std::optional<std::int64_t> memory_of(std::size_t trial) const;
  SlotRequest request_for(std::size_t trial) const;
  bool suits(const SlotState& slot, const DeviceShare& share, std::size_t trial) const;
  void acquire_shares();
  SlotState* idle_share(std::size_t trial, Clock::time_point now);
  void choose_shares(std::vector<std::pair<SlotState*, std::size_t>>& chosen,
                     Clock::time_point now);
  void memory_reported(Live& live, SlotState& slot, const IngestUpdate& update);
  void resize_share(SlotState& slot, std::int64_t wanted, const Live* but = nullptr);
  void report_front(const SlotState& slot);
  void ran_out_of_memory(const Live& live, SlotState& slot);

  // --- run_turn.cpp
  bool claiming() const;
  bool has_news() const;
  bool transaction_due(Clock::time_point now) const;
  void turn();
  void transact(Clock::time_point now);
  void set_ended_aside(SlotState& slot);
  void plan_concluded();
  void record_launches();
  void read_events();
  void read_events(Live& live);
  void conclude_attempt(Live& live, const results::Ending& ending);
  bool conclude_worker(SlotState& slot, const Gone& gone);
  void never_begun(const Live& live, const std::string& what, const std::string& lines);
  void launch_failed(SlotState& slot, const std::string& what, const std::string& lines);
  void learn_pace(SlotState& slot, Clock::time_point now);
  std::string last_lines_of(const Live& live, SlotState& slot) const;
  std::vector<Gone>::iterator gone_with(const Live& live, SlotState& slot) const;
  void settle_over(std::size_t trial, TrialPlan plan);
  void take_out(Live& live, SlotState& slot);
  void front_changed(SlotState& slot);

  // --- run_claims.cpp
  bool can_claim(Clock::time_point now) const;
  bool takes_claims(const SlotState& slot, Clock::time_point now) const;
  bool runs_dry(const SlotState& slot) const;
  bool to_give_back(const SlotState& slot, const Live& live) const;
  void take_claim_back(Live& live, SlotState& slot);
  void give_ready_back(SlotState& slot);
  std::int64_t slots_missing(Clock::time_point now) const;
  void acquire_slots();
  std::size_t line_length(const SlotState& slot) const;
  SlotState& add_slot(const std::string& name);
  void choose(std::vector<std::pair<SlotState*, std::size_t>>& chosen, Clock::time_point now);
  void claim(SlotState& slot, std::size_t index, std::int64_t at_least, results::Batch& batch);
  void prepare(Live& live);
  bool prepare_one();
  void give(SlotState& slot);
  void close_idle_workers();

  boost::asio::io_context& loop_;
  results::Store& store_;
  Launcher& launcher_;
  const sweeps::Sweep& sweep_;
  const sweeps::Locations& locations_;
  RunOptions options_;
  RunObserver& observer_;
  Ingest ingest_;
  Recovery recovery_;
  EventWatch watch_;
  boost::asio::steady_timer tick_timer_;
  boost::asio::steady_timer retry_timer_;
  HostIdentity here_;
  std::map<std::string, std::string> data_digests_;

  Phase phase_ = Phase::running;
  int interrupts_ = 0;  // by signals of the user
  std::vector<Trial> trials_;
  std::unordered_map<std::string, std::size_t> by_id_;
  Schedule schedule_{{}};
  std::list<Live> live_;
  std::map<int, Live*> by_watch_;
  std::set<Live*> dirty_;
  std::map<std::string, SlotState> slots_;
  std::list<Orphans> orphans_;  // held until the end
  std::list<Stray> strays_;
  std::vector<Live*> launched_;     // whose launch is not in the database yet
  std::set<std::string> launches_;  // slots whose launch() has changed
  // What files said, for the next transaction to store.
  std::vector<std::function<void(results::Batch&)>> to_store_;
  std::vector<std::size_t> concluded_;   // trials to be planned when that is committed
  std::vector<std::size_t> taken_back_;  // those whose claims were, likewise
  std::vector<std::pair<std::size_t, TrialPlan>> over_;  // settled when the batch is committed
  std::set<std::size_t> cancelled_;                      // as of the last look
  std::set<std::size_t> elsewhere_;
  std::size_t unknown_elsewhere_ = 0;  // of these, on other hosts or in a queue
  std::string unknown_hint_;
  std::int64_t seen_version_ = 0;
  std::int64_t decisions_version_ = -1;
  std::int64_t finished_here_ = 0;
  std::vector<std::int64_t> state_counts_ = std::vector<std::int64_t>(8, 0);
  Clock::time_point committed_;
  bool fruitless_ = false;  // nothing could be chosen, and nothing has changed since
  std::optional<Clock::time_point> armed_;  // retry_timer_
  Clock::time_point reported_;
  Clock::time_point looked_elsewhere_;
  Clock::time_point planned_elsewhere_;
  Clock::time_point checked_limits_ = Clock::now();
  int launch_failures_ = 0;  // of all slots, in a row
  Clock::time_point looked_for_slots_;
  std::string problem_;
  std::string left_;  // why the first of the trials that are left for the next run is
  std::vector<std::size_t> shapes_;             // by trial; those of one differ in the seed alone
  std::vector<std::int64_t> shape_memory_mib_;  // by shape: the most that was measured; 0: nothing
  std::optional<Clock::time_point> waits_since_;  // for a slot, with none; when to tell
};

}  // namespace petlab::orchestrator
