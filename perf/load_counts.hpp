#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hubferry::perf {

/// The series of a /metrics page.
class Scrape {
 public:
  Scrape() = default;
  explicit Scrape(std::string_view text);

  struct Series {
    std::map<std::string, std::string> labels;
    double value = 0;
  };
  /// Empty if there is none of that name.
  [[nodiscard]] const std::vector<Series>& of(const std::string& name) const;
  /// The sum of a name's series with this label; an empty label matches all.
  [[nodiscard]] double sum(const std::string& name, const std::string& label = {}, const std::string& value = {}) const;
  /// Of a histogram, interpolated within its bucket; 0 without values.
  [[nodiscard]] double quantile(const std::string& histogram, double share) const;

 private:
  std::map<std::string, std::vector<Series>> series_;
};

/// Requests to API servers by verb and kind, such as "LIST secrets" or "PUT managedclustermigrations/status".
using RequestTable = std::map<std::string, double>;
/// Adds what `after` has more than `before`, from apiserver_request_total.
void add_requests(RequestTable& into, const Scrape& before, const Scrape& after);
double total(const RequestTable& requests);

}  // namespace hubferry::perf
