#include "trainer/backbones/generation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/backbones/t5_decoder.h"

namespace petlab::trainer {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

/// An input that is not done.
struct RunningInput {
  std::size_t number = 0;            // in the result
  std::vector<GeneratedText> beams;  // the score is the log probability so far
};

/// Bans what the options forbid behind each text (ids without the start token, which counts as the
/// first token of an n-gram).
void ban(const GenerationOptions& options, const T5Config& config,
         const std::vector<const GeneratedText*>& texts, Tensor& log_probabilities) {
  float* const data = log_probabilities.mutable_data_ptr<float>();
  const std::int64_t words = log_probabilities.size(1);
  const auto n = static_cast<std::size_t>(options.no_repeat_ngrams);
  for (std::size_t r = 0; r < texts.size(); ++r) {
    float* const row = data + static_cast<std::int64_t>(r) * words;
    if (static_cast<std::int64_t>(texts[r]->ids.size()) < options.min_tokens) {
      row[config.eos_token_id] = kNever;
    }
    if (n == 0) continue;
    std::vector<std::int64_t> all{config.decoder_start_token_id};
    all.insert(all.end(), texts[r]->ids.begin(), texts[r]->ids.end());
    for (std::size_t begin = 0; begin + n <= all.size(); ++begin) {
      // The n-gram that begins here would be there again if its beginning is the text's end.
      if (std::equal(all.begin() + static_cast<std::ptrdiff_t>(begin),
                     all.begin() + static_cast<std::ptrdiff_t>(begin + n - 1),
                     all.end() - static_cast<std::ptrdiff_t>(n - 1))) {
        row[all[begin + n - 1]] = kNever;
      }
    }
  }
}

/// Takes the text among the best that ended, of which at most `beams` stay.
void add_finished(std::vector<GeneratedText>& finished, GeneratedText text, std::int64_t beams) {
  const auto worse = std::find_if(finished.begin(), finished.end(),
                                  [&](const GeneratedText& one) { return one.score < text.score; });
  finished.insert(worse, std::move(text));
  if (static_cast<std::int64_t>(finished.size()) > beams) finished.pop_back();
}

/// One step of an input's search, with the candidates that are best of all its beams'
/// continuations, the best first. Returns which of its beams each of the new ones goes on from;
/// none: it is done.
class Search {
 public:
  Search(const GenerationOptions& options, const T5Config& config)
      : options_(options), config_(config) {}

  struct Candidate {
    std::int64_t beam = 0;
    std::int64_t token = 0;
    double score = 0;
  };

  std::vector<std::int64_t> advance(RunningInput& input, const std::vector<Candidate>& candidates,
                                    std::vector<GeneratedText>& finished) const {
    std::vector<GeneratedText> running;
    std::vector<std::int64_t> from;
    const std::size_t length = input.beams.front().ids.size() + 1;
    const bool last = static_cast<std::int64_t>(length) == options_.max_tokens;
    for (std::size_t rank = 0; rank < candidates.size(); ++rank) {
      const Candidate& candidate = candidates[rank];
      GeneratedText text = input.beams[static_cast<std::size_t>(candidate.beam)];
      text.ids.push_back(candidate.token);
      text.score = candidate.score;
      const bool ends = last || candidate.token == config_.eos_token_id;
      if (ends && static_cast<std::int64_t>(rank) < options_.beams &&
          candidate.score > -std::numeric_limits<double>::infinity()) {
        text.score = scored(candidate.score, length);
        add_finished(finished, std::move(text), options_.beams);
      } else if (!ends && static_cast<std::int64_t>(running.size()) < options_.beams) {
        running.push_back(std::move(text));
        from.push_back(candidate.beam);
      }
    }
    if (last || is_done(running, finished, length)) return {};
    input.beams = std::move(running);
    return from;
  }

 private:
  double scored(double log_probability, std::size_t length) const {
    if (options_.beams == 1) return log_probability;
    return log_probability / std::pow(static_cast<double>(length), options_.length_penalty);
  }

  bool is_done(const std::vector<GeneratedText>& running,
               const std::vector<GeneratedText>& finished, std::size_t length) const {
    if (options_.beams == 1) return !finished.empty();
    if (static_cast<std::int64_t>(finished.size()) < options_.beams) return false;
    return options_.early_stopping ||
           scored(running.front().score, length) <= finished.back().score;
  }

  const GenerationOptions& options_;
  const T5Config& config_;
};

}  // namespace

std::vector<std::vector<GeneratedText>> generate(const T5& model, const PackedSequences& sources,
                                                 const Hooks& hooks,
                                                 const GenerationOptions& options) {
  const at::NoGradGuard no_grad;
  const T5Config& config = model.config();
  if (options.beams < 1 || 2 * options.beams > config.vocab_size) {
    throw std::invalid_argument("beams is " + std::to_string(options.beams) +
                                ", must be from 1 to half of the vocabulary's size, " +
                                std::to_string(config.vocab_size));
  }
  if (options.max_tokens < 1) {
    throw std::invalid_argument("max_tokens is " + std::to_string(options.max_tokens) +
                                ", must be at least 1");
  }
  std::vector<std::vector<GeneratedText>> finished(static_cast<std::size_t>(sources.sequences()));
  T5Decoder decoder(model, sources, model.encode_sources(sources, hooks, nullptr), hooks);
  std::vector<RunningInput> inputs;
  // All beams begin alike: the first step needs one.
  for (std::size_t i = 0; i < finished.size(); ++i) inputs.push_back({i, {GeneratedText()}});
  const Search search(options, config);
  while (!inputs.empty()) {
    std::vector<std::int64_t> ids;
    std::vector<const GeneratedText*> texts;
    for (const RunningInput& input : inputs) {
      for (const GeneratedText& beam : input.beams) {
        ids.push_back(beam.ids.empty() ? config.decoder_start_token_id : beam.ids.back());
        texts.push_back(&beam);
      }
    }
    Tensor log_probabilities =
        at::log_softmax(decoder.step(ids).to(at::kFloat), 1).to(at::kCPU).contiguous();
    ban(options, config, texts, log_probabilities);
    Tensor sums = at::empty({static_cast<std::int64_t>(texts.size()), 1}, at::kFloat);
    for (std::size_t r = 0; r < texts.size(); ++r) {
      sums.mutable_data_ptr<float>()[r] = static_cast<float>(texts[r]->score);
    }
    const std::int64_t words = config.vocab_size;
    const auto each = static_cast<std::int64_t>(inputs.front().beams.size());
    const Tensor continued =
        (log_probabilities + sums).view({static_cast<std::int64_t>(inputs.size()), each * words});
    // As many as there may be ends among the best and still `beams` that go on.
    const std::int64_t wanted = std::min(2 * options.beams, each * words);
    const auto [scores, places] = continued.topk(wanted, 1);
    std::vector<std::vector<std::int64_t>> rows;
    std::vector<RunningInput> left;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      std::vector<Search::Candidate> candidates;
      for (std::int64_t c = 0; c < wanted; ++c) {
        const auto at = static_cast<std::int64_t>(i) * wanted + c;
        const std::int64_t place = places.const_data_ptr<std::int64_t>()[at];
        candidates.push_back({place / words, place % words,
                              static_cast<double>(scores.const_data_ptr<float>()[at])});
      }
      std::vector<std::int64_t> from =
          search.advance(inputs[i], candidates, finished[inputs[i].number]);
      for (std::int64_t& row : from) row += static_cast<std::int64_t>(i) * each;
      if (!from.empty()) left.push_back(std::move(inputs[i]));
      rows.push_back(std::move(from));
    }
    inputs = std::move(left);
    if (!inputs.empty()) decoder.keep(rows);
  }
  return finished;
}

}  // namespace petlab::trainer
