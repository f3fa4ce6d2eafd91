#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace petlab::exports {

/// A hyperparameter of TensorBoard's HParams page.
using Hparam = std::pair<std::string, std::variant<double, bool, std::string>>;

/// How a run ended, as that page shows it (hparams' api.proto, Status).
enum class RunEnd { unknown = 0, success = 1, failure = 2, running = 3 };

/// An event file of TensorBoard (events.out.tfevents.…): records, each a length, its masked
/// CRC-32C, a serialized tensorflow.Event and the masked CRC-32C of that. A whole TensorFlow, or
/// protobuf with a compiled copy of its schemas, would be the library for this; five messages of a
/// few fields each, whose numbers never change, are written here by hand, and a test has
/// TensorBoard's own reader read them. Throws base::Error where the file cannot be written.
class EventFile {
 public:
  /// A new file that says its version. Times are seconds since 1970.
  EventFile(std::filesystem::path file, double time);
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// A value of the Scalars page, in 64 bits; undefined is NaN.
  void scalar(std::string_view tag, std::int64_t step, double time, std::optional<double> value);
  /// The run's place on the HParams page.
  void begin_run(const std::vector<Hparam>& hparams, double time);
  void end_run(RunEnd end, double time);
  /// Throws where something could not be written.
  void close();

 private:
  void summary(std::string_view tag, std::int64_t step, double time, const std::string& tensor,
               const std::string& about);
  void record(const std::string& event);

  std::filesystem::path file_;
  std::ofstream out_;
};

}  // namespace petlab::exports
