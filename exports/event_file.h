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

#include "exports/run.h"

namespace petlab::exports {

/// A hyperparameter of TensorBoard's HParams page.
using Hparam = std::pair<std::string, std::variant<double, bool, std::string>>;

/// A TensorBoard event file (events.out.tfevents.…): a sequence of records, each a length, its
/// masked CRC-32C, a serialized tensorflow.Event and the masked CRC-32C of that. The usual library
/// would be all of TensorFlow, or protobuf with compiled copies of its schemas. The five small
/// messages are encoded by hand instead (Message), and a test reads them with TensorBoard. Throws
/// base::Error if the file cannot be written.
class EventFile {
 public:
  /// Creates a file and writes its version. Times are seconds since 1970.
  EventFile(std::filesystem::path file, double time);
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// Writes a 64-bit value for the Scalars page; undefined becomes NaN.
  void scalar(std::string_view tag, std::int64_t step, double time, std::optional<double> value);
  /// Adds the run to the HParams page.
  void begin_run(const std::vector<Hparam>& hparams, double time);
  void end_run(RunEnd end, double time);
  /// Throws if some data could not be written.
  void close();

 private:
  void summary(std::string_view tag, std::int64_t step, double time, const std::string& tensor,
               const std::string& about);
  void record(const std::string& event);

  std::filesystem::path file_;
  std::ofstream out_;
};

}  // namespace petlab::exports
