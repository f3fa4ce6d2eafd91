#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace petlab::trainer {

/// Whether the bytes start with a zip archive's signature.
bool looks_like_zip(std::span<const std::byte> bytes);

/// Returns the entries of a zip archive (also ZIP64) by name, as views of `bytes`. Supports only
/// stored entries, as torch writes them. Throws Error beginning with `file` for truncated,
/// compressed, encrypted or duplicate entries, and for entries outside the file.
std::map<std::string, std::span<const std::byte>, std::less<>> read_zip(
    std::span<const std::byte> bytes, const std::string& file);

}  // namespace petlab::trainer
