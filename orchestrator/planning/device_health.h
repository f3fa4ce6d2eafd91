#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace petlab::orchestrator {

/// This many different trials in a row that fail on a device put it under suspicion.
inline constexpr std::size_t kFailuresThatDisable = 3;

/// The GPUs of a device: the UUIDs of a slot with several GPUs have commas between them.
std::vector<std::string> gpus_of(const std::string& device);

/// Finds the devices (GPUs, or hosts of a cluster) on which every trial fails. A device is disabled
/// for the run when kFailuresThatDisable different trials in a row failed there while the last
/// trial of another device finished. A trial that failed on two devices is at fault itself: it
/// counts against neither, and a device that was disabled because of it is used again. So if
/// everything fails everywhere, no device is disabled. Pure: no clock, no file, no process.
class DeviceHealth {
 public:
  /// An attempt whose failure a device may be to blame for.
  struct Failure {
    std::size_t trial = 0;
    std::int64_t attempt = 0;
  };
  struct Change {
    std::string device;
    /// True: from now on the device is disabled; false: it is used again.
    bool disabled = false;
    std::string finished_on;  // disabled: the device on which the last trial finished
  };

  void finished(const std::string& device);
  void failed(const std::string& device, const Failure& failure);

  /// Devices that became disabled, or usable again, since the last call.
  std::vector<Change> take_changes() { return std::exchange(changes_, {}); }
  /// Failures on disabled devices that must not count against their trials, each returned once.
  std::vector<Failure> take_excused();

  bool is_disabled(const std::string& device) const;
  /// True if the trial failed on the device, and nothing has finished there since.
  bool blames(const std::string& device, std::size_t trial) const;
  /// Different trials in a row that failed on the device.
  std::size_t failures(const std::string& device) const;
  /// True while a device with kFailuresThatDisable failures must wait, because a trial on another
  /// device will show who is at fault. `at_work`: devices that run a trial.
  bool must_wait(const std::string& device, const std::set<std::string>& at_work) const;

 private:
  struct Device {
    std::map<std::size_t, std::int64_t> failed;  // attempt by trial, since a trial finished here
    bool last_finished = false;
    bool disabled = false;
  };
  const Device* find(const std::string& device) const;
  void judge();

  std::map<std::string, Device> devices_;
  std::map<std::size_t, std::string> failed_on_;  // the first device of each trial that failed
  std::set<std::size_t> at_fault_;                // trials that failed on two devices
  std::set<std::pair<std::size_t, std::int64_t>> excused_;
  std::vector<Change> changes_;
};

}  // namespace petlab::orchestrator
