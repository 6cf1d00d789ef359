#include "generate/speech/speech_model.h"

#include <algorithm>

#include "base/file/file.h"
#include "base/file/listing.h"
#include "checkpoint/architecture.h"

namespace invar::generate {
namespace {

using json::Value;

// "<|en|>" -> "en"
std::string bare(std::string name) {
  if (name.starts_with("<|") && name.ends_with("|>")) name = name.substr(2, name.size() - 4);
  return name;
}

Result<int32_t> id_of(const Value& v, const std::string& where) {
  if (v.is_unsigned() && v.to_uint64() <= INT32_MAX) return static_cast<int32_t>(v.to_uint64());
  return bad_input(where + " = " + checkpoint::short_text(v) + " is not a token id");
}

Result<std::map<std::string, int32_t>> ids_by_name(const Value& object, const std::string& where) {
  std::map<std::string, int32_t> ids;
  if (object.is_null()) return ids;
  if (!object.is_object()) return bad_input(where + " is no object of token ids");
  for (const auto& [name, id] : object.members) {
    INVAR_TRY(ids[bare(name)], id_of(id, where + ": " + name));
  }
  return ids;
}

int64_t size_in(const Value& config, const char* key, int64_t absent) {
  const Value v = config.get(key);
  return v.is_unsigned() && v.to_uint64() <= INT32_MAX ? static_cast<int64_t>(v.to_uint64()) : absent;
}

// The front end is law, so the file may only repeat it.
Status check_front_end(const std::string& folder, const SpeechModel& m) {
  const std::string file = folder + "/preprocessor_config.json";
  if (!exists(file)) return {};
  INVAR_TRY(const std::string text, read_file(file));
  INVAR_TRY(const Value config, json::read(text, file));
  const std::pair<const char*, Value> expected[] = {{"feature_extractor_type", "WhisperFeatureExtractor"},
                                                    {"feature_size", m.bands},
                                                    {"sampling_rate", audio::kSpeechRate},
                                                    {"hop_length", audio::kSamplesPerFrame},
                                                    {"n_fft", 400},
                                                    {"n_samples", m.samples()},
                                                    {"nb_max_frames", m.frames},
                                                    {"padding_value", 0.0},
                                                    {"padding_side", "right"},
                                                    {"dither", 0.0},
                                                    {"do_normalize", false}};
  for (const auto& [key, value] : expected) {
    const Value found = config.get(key);
    const bool same =
        found == value || (found.is_number() && value.is_number() && found.to_double() == value.to_double());
    if (!found.is_null() && !same)
      return not_covered(file + ": '" + key + "' = " + checkpoint::short_text(found) + " is not covered; " +
                         json::dump(value) + " is");
  }
  return {};
}

// What the file says of language and task, by words, or as older ones by `forced_decoder_ids`:
// [[1, LANGUAGE or null], [2, TASK], [3, NO TIMESTAMPS]].
Status read_defaults(const Value& generation, const std::string& file, SpeechModel& m) {
  const auto named = [&](const char* key, std::string& into) -> bool {
    const Value v = generation.get(key);
    if (v.is_string()) into = bare(v.text);
    return v.is_string() || v.is_null();
  };
  if (!named("language", m.language) || !named("task", m.task))
    return bad_input(file + ": 'language' or 'task' is no text");
  if (!m.language.empty() || generation.get("task").is_string()) return {};
  for (const Value& pair : generation.get("forced_decoder_ids").items) {
    if (!pair.is_array() || pair.size() != 2)
      return bad_input(file + ": 'forced_decoder_ids' is no list of pairs");
    if (pair.items[1].is_null()) continue;
    INVAR_TRY(const int32_t id, id_of(pair.items[1], file + ": forced_decoder_ids"));
    bool known = id == m.no_timestamps;
    for (const auto& [names, into] : {std::pair{&m.languages, &m.language}, {&m.tasks, &m.task}})
      for (const auto& [name, token] : *names)
        if (token == id) *into = name, known = true;
    if (!known)
      return not_covered(file + ": 'forced_decoder_ids' has the token " + std::to_string(id) +
                         ", which is neither a language nor a task nor the end of timestamps");
  }
  return {};
}

std::string listed(const std::map<std::string, int32_t>& names) {
  std::string list;
  for (const auto& [name, id] : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

}  // namespace

Result<std::vector<int32_t>> SpeechModel::answer_start(const std::string& asked,
                                                       const std::string& asked_task, bool timestamps) const {
  if (timestamps && !has_timestamps())
    return bad_input("timestamps: the model has none ('no_timestamps_token_id' in generation_config.json)");
  std::vector<int32_t> tokens{start};
  if (languages.empty() && !(asked.empty() && asked_task.empty()))
    return bad_input("the model knows one language and transcribes it: leave --language and --task out");
  if (!languages.empty()) {
    const std::string& name = asked.empty() ? language : asked;
    const auto spoken = name.empty() ? languages.begin() : languages.find(name);
    if (spoken == languages.end())
      return bad_input("--language " + name + ": the model knows " + listed(languages));
    const std::string& what = asked_task.empty() ? task : asked_task;
    const auto known = tasks.find(what);
    if (known == tasks.end()) return bad_input("--task " + what + ": the model knows " + listed(tasks));
    tokens.push_back(spoken->second), tokens.push_back(known->second);
  }
  if (has_timestamps() && !timestamps) tokens.push_back(no_timestamps);
  return tokens;
}

bool SpeechModel::is_answer_start(std::span<const int32_t> tokens, bool timestamps) const {
  const auto has = [](const std::map<std::string, int32_t>& ids, int32_t token) {
    return std::ranges::any_of(ids, [&](const auto& id) { return id.second == token; });
  };
  auto expected = answer_start("", "", timestamps);
  if (!expected || expected->size() != tokens.size()) return false;
  if (!languages.empty()) {
    if (!has(languages, tokens[1]) || !has(tasks, tokens[2])) return false;
    (*expected)[1] = tokens[1], (*expected)[2] = tokens[2];
  }
  return std::ranges::equal(*expected, tokens);
}

int32_t SpeechModel::loudest(std::span<const float> logits) const {
  std::vector<int32_t> ids;
  for (const auto& [name, id] : languages)
    if (static_cast<size_t>(id) < logits.size()) ids.push_back(id);
  std::ranges::sort(ids);
  int32_t best = -1;
  for (const int32_t id : ids)
    if (best < 0 || logits[static_cast<size_t>(id)] > logits[static_cast<size_t>(best)]) best = id;
  return best;
}

Result<SpeechModel> read_speech(const std::string& folder, const Value& config, const Value& generation,
                                int32_t start) {
  const std::string file = folder + "/generation_config.json";
  SpeechModel m{size_in(config, "num_mel_bins", 80), 2 * size_in(config, "max_source_positions", 1500),
                start};
  INVAR_CHECK_OK(check_front_end(folder, m));
  if (generation.get("return_timestamps") == true)
    return not_covered(file +
                       ": 'return_timestamps' = true is not covered: set it to false, and ask for them "
                       "(--timestamps)");
  INVAR_TRY(m.languages, ids_by_name(generation.get("lang_to_id"), file + ": lang_to_id"));
  INVAR_TRY(m.tasks, ids_by_name(generation.get("task_to_id"), file + ": task_to_id"));
  if (const Value id = generation.get("no_timestamps_token_id"); !id.is_null()) {
    INVAR_TRY(m.no_timestamps, id_of(id, file + ": no_timestamps_token_id"));
  }
  if (const Value most = generation.get("max_initial_timestamp_index"); !most.is_null()) {
    if (!most.is_unsigned() || most.to_uint64() > INT32_MAX)
      return bad_input(file + ": max_initial_timestamp_index is no whole number");
    m.max_initial_timestamp = static_cast<int32_t>(most.to_uint64());
  }
  if (generation.get("is_multilingual") == true && m.languages.empty())
    return not_covered(file +
                       ": a model of several languages without 'lang_to_id' is not covered: take the "
                       "generation_config.json of a newer revision of the model");
  if (!m.languages.empty() && !m.tasks.contains(m.task))
    return bad_input(file + ": 'lang_to_id' without the task transcribe in 'task_to_id'");
  INVAR_CHECK_OK(read_defaults(generation, file, m));
  return m;
}

}  // namespace invar::generate
