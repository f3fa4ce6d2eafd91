#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace petlab::trainer {

/// Whether the bytes begin as a zip archive does.
bool looks_like_zip(std::span<const std::byte> bytes);

/// The entries of a zip archive (ZIP64 too) by name, as views into `bytes`. Only stored entries are
/// read, as torch writes them. Throws Error beginning with `file` for what is truncated,
/// compressed, encrypted, there twice or outside the file.
std::map<std::string, std::span<const std::byte>, std::less<>> read_zip(
    std::span<const std::byte> bytes, const std::string& file);

}  // namespace petlab::trainer
