#include "fetch/data_sources.h"

namespace petlab::fetch {
namespace {

DataSource glue_zip(const std::string& task, const std::string& folder, const DataFile& zip,
                    const std::string& development = "dev.tsv") {
  return {task, "glue/" + folder, {zip}, {"train.tsv", development}, DataSource::Form::zip};
}

std::vector<DataSource> all_sources() {
  return {
      glue_zip("cola", "CoLA",
               {"/glue/data/CoLA.zip", 376971,
                "f212fcd832b8f7b435fb991f101abf89f96b933ab400603bf198960dfc32cbff"}),
      glue_zip("sst2", "SST-2",
               {"/glue/data/SST-2.zip", 7439277,
                "d67e16fb55739c1b32cdce9877596db1c127dc322d93c082281f64057c16deaa"}),
      // Its licence excludes it from GLUE's archives: the text is from SentEval, the split from
      // GLUE.
      {"mrpc",
       "glue/MRPC",
       {{"/glue/data/mrpc_dev_ids.tsv", 6222,
         "971d7767d81b997fd9060ade0ec23c4fc31cbb226a55d1bd4a1bac474eb81dc7"},
        {"/senteval/senteval_data/msr_paraphrase_train.txt", 1047044,
         "60a9b09084528f0673eedee2b69cb941920f0b8cd0eeccefc464a98768457f89"}},
       {"train.tsv", "dev.tsv"},
       DataSource::Form::mrpc},
      glue_zip("qqp", "QQP",
               {"/glue/data/QQP-clean.zip", 41696084,
                "40e7c862c04eb26ee04b67fd900e76c45c6ba8e6d8fab4f8f1f8072a1a3fbae0"}),
      glue_zip("stsb", "STS-B",
               {"/glue/data/STS-B.zip", 802872,
                "e60a6393de5a8b5b9bac5020a1554b54e3691f9d600b775bd131e613ac179c85"}),
      glue_zip("mnli", "MNLI",
               {"/glue/data/MNLI.zip", 312783507,
                "e7c1d896d26ed6caf700110645df426cc2d8ebf02a5ab743d5a5c68ac1c83633"},
               "dev_matched.tsv"),
      // The second version: in the first, development rows overlap with training rows.
      glue_zip("qnli", "QNLI",
               {"/glue/data/QNLIv2.zip", 10627589,
                "e634e78627a29adaecd4f955359b22bf5e70f2cbd93b493f2d624138a0c0e5f5"}),
      glue_zip("rte", "RTE",
               {"/glue/data/RTE.zip", 697150,
                "6bf86de103ecd335f3441bd43574d23fef87ecc695977a63b82d5efb206556ee"}),
  };
}

}  // namespace

std::span<const DataSource> data_sources() {
  static const std::vector<DataSource> all = all_sources();
  return all;
}

}  // namespace petlab::fetch
