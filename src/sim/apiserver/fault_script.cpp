#include "hubferry/sim/fault_script.hpp"

#include <stdexcept>

#include "hubferry/async/clock.hpp"
#include "hubferry/kube/yaml.hpp"

namespace hubferry::sim {

namespace {

namespace json = kube::json;

/// Reads one rule: every field must be consumed.
class RuleReader {
 public:
  RuleReader(const json::value& rule, std::string where) : where_(std::move(where)) {
    if (!rule.is_object()) fail("is not a mapping");
    fields_ = rule.get_object();
  }

  [[noreturn]] void fail(const std::string& why) const { throw std::runtime_error(where_ + " " + why); }

  bool has(const char* field) const { return fields_.contains(field); }

  std::string text(const char* field) {
    const auto value = take(field);
    if (value.is_null()) return {};
    if (!value.is_string()) fail(std::string{field} + " must be a string");
    return std::string{value.get_string()};
  }

  std::int64_t whole(const char* field, std::int64_t least) {
    const auto value = take(field);
    if (!value.is_int64() || value.get_int64() < least)
      fail(std::string{field} + " must be an integer of at least " + std::to_string(least));
    return value.get_int64();
  }

  double fraction(const char* field) {
    const auto value = take(field);
    const double number = value.is_double()  ? value.get_double()
                          : value.is_int64() ? static_cast<double>(value.get_int64())
                                             : -1;
    if (number < 0 || number > 1) fail(std::string{field} + " must be a number from 0 to 1");
    return number;
  }

  void flag(const char* field) {
    const auto value = take(field);
    if (!value.is_bool() || !value.get_bool()) fail(std::string{field} + " can only be true");
  }

  Latency latency(const char* field) {
    const auto value = take(field);
    if (value.is_string()) return Latency::fixed(duration(field, value));
    if (value.is_object() && value.get_object().size() == 1) {
      const auto& shape = *value.get_object().begin();
      if (shape.value().is_array() && shape.value().get_array().size() == 2) {
        const auto low = duration(field, shape.value().get_array()[0]);
        const auto high = duration(field, shape.value().get_array()[1]);
        if (shape.key() == "uniform") return Latency::uniform(low, high);
        if (shape.key() == "exponential") return Latency::exponential(low, high);
      }
    }
    fail(std::string{field} + " must be a duration, {uniform: [least, most]} or {exponential: [least, mean]}");
  }

  void finish() const {
    if (!fields_.empty()) fail("has an unknown field: " + std::string{fields_.begin()->key()});
  }

 private:
  json::value take(const char* field) {
    const auto found = fields_.find(field);
    if (found == fields_.end()) return nullptr;
    json::value value = std::move(found->value());
    fields_.erase(found);
    return value;
  }

  async::Duration duration(const char* field, const json::value& value) const {
    try {
      if (value.is_string())
        if (const auto read = async::parse_duration(value.get_string()); read >= async::Duration{0}) return read;
    } catch (const std::invalid_argument&) {
    }
    fail(std::string{field} + " must be a duration such as 100ms");
  }

  json::object fields_;
  std::string where_;
};

using Setting = std::function<void(FaultRule&)>;

Setting read_frequency(RuleReader& rule) {
  Setting often = [](FaultRule&) {};
  int given = 0;
  if (rule.has("times")) {
    const auto times = static_cast<std::uint64_t>(rule.whole("times", 1));
    often = [times](FaultRule& made) { made.times(times); };
    ++given;
  }
  if (rule.has("rate")) {
    const auto rate = rule.fraction("rate");
    often = [rate](FaultRule& made) { made.rate(rate); };
    ++given;
  }
  if (rule.has("always")) {
    rule.flag("always");
    often = [](FaultRule& made) { made.always(); };
    ++given;
  }
  if (given > 1) rule.fail("has more than one of times, rate and always");
  if (!rule.has("after")) return often;
  const auto after = static_cast<std::uint64_t>(rule.whole("after", 0));
  return [often, after](FaultRule& made) {
    often(made);
    made.after(after);
  };
}

Setting read_reset(RuleReader& rule) {
  const auto when = rule.text("reset");
  if (when == "before") return [](FaultRule& made) { made.reset_before(); };
  if (when == "after") return [](FaultRule& made) { made.reset_after(); };
  rule.fail("reset must be before or after");
}

Setting read_watch(RuleReader& rule) {
  const auto what = rule.text("watch");
  if (what == "drop") return [](FaultRule& made) { made.drop_event(); };
  if (what == "cut") return [](FaultRule& made) { made.cut_watch(); };
  rule.fail("watch must be drop or cut");
}

Setting read_effect(RuleReader& rule) {
  std::vector<Setting> effects;
  if (rule.has("fail")) {
    const auto status = static_cast<int>(rule.whole("fail", 400));
    std::optional<int> pause;
    if (rule.has("retryAfter")) pause = static_cast<int>(rule.whole("retryAfter", 0));
    effects.push_back([status, pause](FaultRule& made) { made.fail(status, pause); });
  }
  if (rule.has("delay")) effects.push_back([latency = rule.latency("delay")](FaultRule& made) { made.delay(latency); });
  if (rule.has("reset")) effects.push_back(read_reset(rule));
  if (rule.has("stale"))
    effects.push_back([versions = rule.whole("stale", 1)](FaultRule& made) { made.stale(versions); });
  if (rule.has("watch")) effects.push_back(read_watch(rule));
  if (rule.has("delayEvent"))
    effects.push_back([latency = rule.latency("delayEvent")](FaultRule& made) { made.delay_event(latency); });
  if (rule.has("compact")) {
    rule.flag("compact");
    effects.push_back([](FaultRule& made) { made.compact(); });
  }
  if (effects.size() != 1) rule.fail("needs exactly one of fail, delay, reset, stale, watch, delayEvent and compact");
  return effects.front();
}

}  // namespace

FaultScript FaultScript::parse(std::string_view text, const std::string& file) {
  FaultScript script;
  const auto documents = kube::parse_yaml_documents(text, file);
  if (documents.empty()) return script;
  if (documents.size() > 1 || !documents.front().is_array())
    throw std::runtime_error(file + ": must be a single list of rules");
  for (const auto& item : documents.front().get_array()) {
    RuleReader reader{item, file + ": rule " + std::to_string(script.rules_.size() + 1)};
    Rule rule;
    rule.server = reader.text("server");
    rule.target = {reader.text("verb"), reader.text("resource"), reader.text("subresource"), reader.text("namespace"),
                   reader.text("name")};
    const auto frequency = read_frequency(reader);
    const auto effect = read_effect(reader);
    reader.finish();
    rule.set = [frequency, effect](FaultRule& made) {
      frequency(made);
      effect(made);
    };
    script.rules_.push_back(std::move(rule));
  }
  return script;
}

void FaultScript::apply(const std::string& server, Faults& faults) const {
  for (const auto& rule : rules_)
    if (rule.server.empty() || rule.server == server) rule.set(faults.on(rule.target));
}

std::vector<std::string> FaultScript::servers() const {
  std::vector<std::string> names;
  for (const auto& rule : rules_)
    if (!rule.server.empty()) names.push_back(rule.server);
  return names;
}

}  // namespace hubferry::sim
