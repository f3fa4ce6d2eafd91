#include "trainer/backbones/generation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/backbones/t5_decoder.h"
#include "trainer/compute/row_kernels.h"
#include "trainer/compute/tensors.h"

namespace petlab::trainer {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

/// An input whose search is still running.
struct RunningInput {
  std::size_t number = 0;            // index in the result
  std::vector<GeneratedText> beams;  // their scores are the log probabilities so far
};

/// Returns the tokens that the options forbid as the next token of each text, as indices into the
/// texts' logits (texts, words). Ids omit the start token, which counts as the first token of an
/// n-gram.
std::vector<std::int64_t> banned(const GenerationOptions& options, const T5Config& config,
                                 const std::vector<const GeneratedText*>& texts) {
  std::vector<std::int64_t> places;
  const auto n = static_cast<std::size_t>(options.no_repeat_ngrams);
  for (std::size_t r = 0; r < texts.size(); ++r) {
    const std::int64_t row = static_cast<std::int64_t>(r) * config.vocab_size;
    if (static_cast<std::int64_t>(texts[r]->ids.size()) < options.min_tokens) {
      places.push_back(row + config.eos_token_id);
    }
    if (n == 0) continue;
    std::vector<std::int64_t> all{config.decoder_start_token_id};
    all.insert(all.end(), texts[r]->ids.begin(), texts[r]->ids.end());
    for (std::size_t begin = 0; begin + n <= all.size(); ++begin) {
      // If the text ends with this n-gram's first n - 1 tokens, its last token would repeat it.
      if (std::equal(all.begin() + static_cast<std::ptrdiff_t>(begin),
                     all.begin() + static_cast<std::ptrdiff_t>(begin + n - 1),
                     all.end() - static_cast<std::ptrdiff_t>(n - 1))) {
        places.push_back(row + all[begin + n - 1]);
      }
    }
  }
  return places;
}

/// Adds the text to the finished ones and keeps the best `beams` of them.
void add_finished(std::vector<GeneratedText>& finished, GeneratedText text, std::int64_t beams) {
  const auto worse = std::find_if(finished.begin(), finished.end(),
                                  [&](const GeneratedText& one) { return one.score < text.score; });
  finished.insert(worse, std::move(text));
  if (static_cast<std::int64_t>(finished.size()) > beams) finished.pop_back();
}

/// A possible continuation of a beam.
struct Candidate {
  std::int64_t beam = 0;
  std::int64_t token = 0;
  float score = 0;
};

/// The order of candidates: by score, then beam, then token. NaN comes first, so that it reaches
/// the result and is noticed.
bool comes_before(const Candidate& a, const Candidate& b) {
  if (std::isnan(a.score) != std::isnan(b.score)) return std::isnan(a.score);
  if (a.score > b.score || b.score > a.score) return a.score > b.score;
  return std::pair(a.beam, a.token) < std::pair(b.beam, b.token);
}

/// The best continuations of each text separately, on the host.
struct Continuations {
  Tensor log_probabilities;  // (texts, candidates), the best first
  Tensor tokens;             // (texts, candidates)
};

/// Expects float32 logits (texts, vocab_size) on a CPU, and overwrites them.
Continuations best_by_row(Tensor logits, const std::vector<std::int64_t>& bans,
                          std::int64_t candidates) {
  const std::int64_t texts = logits.size(0);
  const std::int64_t words = logits.size(1);
  float* const all = logits.mutable_data_ptr<float>();
  std::vector<float> normalisers(static_cast<std::size_t>(texts));
  const auto each_text = [&](const auto& work) {
    at::parallel_for(0, texts, 1, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t r = from; r < to; ++r) work(r, normalisers[static_cast<std::size_t>(r)]);
    });
  };
  each_text(
      [&](std::int64_t r, float& normaliser) { normaliser = log_sum_exp(words, all + r * words); });
  for (const std::int64_t place : bans) all[place] = kNever;
  Continuations best{at::empty({texts, candidates}, at::kFloat),
                     at::empty({texts, candidates}, at::kLong)};
  float* const scores = best.log_probabilities.mutable_data_ptr<float>();
  std::int64_t* const tokens = best.tokens.mutable_data_ptr<std::int64_t>();
  each_text([&](std::int64_t r, float normaliser) {
    float* const best_scores = scores + r * candidates;
    if (std::isnan(normaliser)) {
      // The tokens do not matter: NaN scores reach the result and are noticed.
      std::fill_n(best_scores, candidates, normaliser);
      std::iota(tokens + r * candidates, tokens + (r + 1) * candidates, 0);
      return;
    }
    largest_of_row(words, candidates, all + r * words, best_scores, tokens + r * candidates);
    for (std::int64_t i = 0; i < candidates; ++i) best_scores[i] -= normaliser;
  });
  return best;
}

/// Overwrites logits (texts, vocab_size). `bans` is the result of banned().
Continuations best_continuations(Tensor logits, const std::vector<std::int64_t>& bans,
                                 std::int64_t candidates) {
  // Forbidden tokens keep their share of the probability.
  if (is_float_on_cpu(logits)) return best_by_row(std::move(logits), bans, candidates);
  const Tensor normaliser = logits.logsumexp(1, true);
  if (!bans.empty()) {
    logits.view(-1).index_fill_(0, on_device(at::tensor(bans, at::kLong), logits.device()), kNever);
  }
  const auto [values, tokens] = logits.topk(candidates, 1);
  return {(values - normaliser).to(at::kCPU).contiguous(), tokens.to(at::kCPU).contiguous()};
}

/// Performs one step of an input's search on the best candidates of all its beams, the best first.
/// Returns the beam that each new beam continues; empty if the input is done.
class Search {
 public:
  Search(const GenerationOptions& options, const T5Config& config)
      : options_(options), config_(config) {}

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
  // All beams start equal, so the first step needs only one.
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
    // Enough candidates even if `beams` of them end their texts and `beams` more continue.
    const std::int64_t most = std::min(2 * options.beams, config.vocab_size);
    const Continuations best = best_continuations(decoder.step(ids).to(at::kFloat).contiguous(),
                                                  banned(options, config, texts), most);
    const float* const scores = best.log_probabilities.const_data_ptr<float>();
    const std::int64_t* const tokens = best.tokens.const_data_ptr<std::int64_t>();
    const auto each = static_cast<std::int64_t>(inputs.front().beams.size());
    std::vector<std::vector<std::int64_t>> rows;
    std::vector<RunningInput> left;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      std::vector<Candidate> candidates;
      for (std::int64_t beam = 0; beam < each; ++beam) {
        const std::int64_t row = static_cast<std::int64_t>(i) * each + beam;
        const auto so_far =
            static_cast<float>(inputs[i].beams[static_cast<std::size_t>(beam)].score);
        for (std::int64_t at = row * most; at < (row + 1) * most; ++at) {
          candidates.push_back({beam, tokens[at], scores[at] + so_far});
        }
      }
      std::sort(candidates.begin(), candidates.end(), comes_before);
      candidates.resize(static_cast<std::size_t>(most));
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
