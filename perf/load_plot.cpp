#include <array>
#include <fstream>

#include "load_run.hpp"

namespace hubferry::perf {

namespace {

struct Band {
  const char* phase;
  const char* color;
};
/// From the bottom of the plot to its top.
constexpr std::array bands{
    Band{"Completed", "#2e7d32"}, Band{"Cleaning", "#81c784"},     Band{"Registering", "#fbc02d"},
    Band{"Deploying", "#ffb74d"}, Band{"Initializing", "#90caf9"}, Band{"Validating", "#5c6bc0"},
    Band{"Pending", "#b0bec5"},   Band{"Rollbacking", "#ef9a9a"},  Band{"Failed", "#c62828"}};

constexpr double width = 900;
constexpr double height = 360;
constexpr double left = 70;
constexpr double top = 40;

int clusters_in(const Sample& sample, const char* phase) {
  const auto found = sample.clusters.find(phase);
  return found == sample.clusters.end() ? 0 : found->second;
}

}  // namespace

void write_plot(const std::string& file, const LoadOptions& options, const std::vector<Sample>& samples) {
  if (samples.empty()) return;
  std::ofstream out{file};
  const double last = std::max(samples.back().at, 0.001);
  const auto x = [&](double seconds) { return left + width * seconds / last; };
  const auto y = [&](double clusters) { return top + height * (1 - clusters / options.clusters); };
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << left + width + 160 << "\" height=\""
      << top + height + 50 << "\" font-family=\"sans-serif\" font-size=\"13\">\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"" << left << "\" y=\"24\">"
      << options.clusters << " clusters in " << options.migrations << " migrations over " << options.hubs
      << " hubs: clusters by phase of their migration</text>\n";
  std::vector<int> below(samples.size(), 0);
  double legend = top + 12;
  for (const auto& band : bands) {
    std::string lower;
    std::string upper;
    bool used = false;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto at = std::to_string(x(samples[i].at)) + ",";
      lower = at + std::to_string(y(below[i])) + " " + lower;  // drawn backwards
      const int clusters = clusters_in(samples[i], band.phase);
      used = used || clusters > 0;
      below[i] += clusters;
      upper += at + std::to_string(y(below[i])) + " ";
    }
    if (!used) continue;
    out << "<polygon fill=\"" << band.color << "\" points=\"" << upper << lower << "\"/>\n";
    out << "<rect x=\"" << left + width + 12 << "\" y=\"" << legend - 11 << "\" width=\"12\" height=\"12\" fill=\""
        << band.color << "\"/><text x=\"" << left + width + 30 << "\" y=\"" << legend << "\">" << band.phase
        << "</text>\n";
    legend += 20;
  }
  for (int i = 0; i <= 4; ++i) {
    const double clusters = options.clusters * i / 4.0;
    out << "<text x=\"" << left - 8 << "\" y=\"" << y(clusters) + 4 << "\" text-anchor=\"end\">" << clusters
        << "</text><text x=\"" << x(last * i / 4) << "\" y=\"" << top + height + 20 << "\" text-anchor=\"middle\">"
        << static_cast<int>(last * i / 4 * 10) / 10.0 << " s</text>\n";
  }
  out << "<path d=\"M" << left << " " << top << "V" << top + height << "H" << left + width
      << "\" fill=\"none\" stroke=\"black\"/>\n</svg>\n";
}

}  // namespace hubferry::perf
