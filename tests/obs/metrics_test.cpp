#include "hubferry/obs/metrics.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "hubferry/obs/metrics_page.hpp"

namespace hubferry::obs {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Metrics, SeriesExistAtZeroAsSoonAsTheyAreAskedFor) {
  Metrics metrics;
  metrics.counter("a_total", "As.");
  metrics.gauge_family("b", "Bs.", {"kind"}).with({"x"});
  metrics.histogram("c_seconds", "Cs.", {1, 2});
  EXPECT_EQ(metrics.text(), R"(# HELP a_total As.
# TYPE a_total counter
a_total 0
# HELP b Bs.
# TYPE b gauge
b{kind="x"} 0
# HELP c_seconds Cs.
# TYPE c_seconds histogram
c_seconds_bucket{le="1"} 0
c_seconds_bucket{le="2"} 0
c_seconds_bucket{le="+Inf"} 0
c_seconds_sum 0
c_seconds_count 0
)");
}

TEST(Metrics, ValuesCanBeReadBack) {
  Metrics metrics;
  auto& counter = metrics.counter("a_total", "As.");
  counter.increment();
  counter.increment(2.5);
  counter.increment(-1);
  EXPECT_EQ(counter.value(), 3.5) << "a counter never goes down";
  auto& gauge = metrics.gauge("b", "Bs.");
  gauge.set(5);
  gauge.add(-7);
  EXPECT_EQ(gauge.value(), -2);
  auto& histogram = metrics.histogram("c", "Cs.", {1, 10});
  for (const double value : {0.5, 1.0, 3.0, 100.0}) histogram.observe(value);
  EXPECT_EQ(histogram.count(), 4U);
  EXPECT_EQ(histogram.sum(), 104.5);
  EXPECT_EQ(histogram.count_up_to(1), 2U);
  EXPECT_EQ(histogram.count_up_to(10), 3U);
  EXPECT_EQ(histogram.count_up_to(INFINITY), 4U);
  EXPECT_THROW((void)histogram.count_up_to(2), std::logic_error);
}

TEST(Metrics, OpenMetricsDiffersWhereItsStandardDoes) {
  Metrics metrics;
  metrics.counter("a_total", "Says \"a\"\nand \\.").increment(2);
  metrics.histogram("c", "Cs.", {0.5, 1, 1e6}).observe(1);
  EXPECT_EQ(metrics.open_metrics(), R"(# HELP a Says \"a\"\nand \\.
# TYPE a counter
a_total 2
# HELP c Cs.
# TYPE c histogram
c_bucket{le="0.5"} 0
c_bucket{le="1.0"} 1
c_bucket{le="1e+06"} 1
c_bucket{le="+Inf"} 1
c_sum 1
c_count 1
# EOF
)");
  EXPECT_THAT(metrics.text(), HasSubstr("# HELP a_total Says \"a\"\\nand \\\\.\n")) << "the text format keeps quotes";
}

TEST(Metrics, ACounterWithAGivenNameKeepsItAndHasNoTypeInOpenMetrics) {
  Metrics metrics;
  metrics.given_counter_family("hive_moves", "Moves.", {"by"}).with({"r"}).increment();
  EXPECT_EQ(metrics.text(), "# HELP hive_moves Moves.\n# TYPE hive_moves counter\nhive_moves{by=\"r\"} 1\n");
  EXPECT_EQ(metrics.open_metrics(),
            "# HELP hive_moves Moves.\n# TYPE hive_moves unknown\nhive_moves{by=\"r\"} 1\n# EOF\n");
}

TEST(Metrics, LabelValuesAreEscaped) {
  Metrics metrics;
  metrics.counter_family("a_total", "As.", {"v"}).with({"q\" b\\ n\n \xff"}).increment();
  EXPECT_THAT(metrics.text(), HasSubstr("a_total{v=\"q\\\" b\\\\ n\\n \xEF\xBF\xBD\"} 1\n"));
}

// Two spellings of the same broken text would be the same series twice, and Prometheus would refuse the scrape.
TEST(Metrics, BrokenTextNeverMakesASeriesTwice) {
  Metrics metrics;
  auto& family = metrics.counter_family("a_total", "As.", {"v"}, 1);
  family.with({"\xff"}).increment();
  family.with({"\xfe"}).increment();
  EXPECT_EQ(family.with({"\xEF\xBF\xBD"}).value(), 2);
  family.with({"one too many"});
  family.with({"\xfe"}).increment();
  EXPECT_EQ(family.with({"\xff"}).value(), 3) << "still itself after the limit was reached";
}

TEST(Metrics, NumbersAreWrittenAsPrometheusReadsThem) {
  Metrics metrics;
  auto& family = metrics.gauge_family("a", "As.", {"n"});
  family.with({"nan"}).set(NAN);
  family.with({"inf"}).set(INFINITY);
  family.with({"minus"}).set(-INFINITY);
  family.with({"small"}).set(1e-9);
  family.with({"time"}).set(1794793728.45);
  EXPECT_THAT(metrics.text(),
              AllOf(HasSubstr(R"({n="nan"} NaN)"), HasSubstr(R"({n="inf"} +Inf)"), HasSubstr(R"({n="minus"} -Inf)"),
                    HasSubstr(R"({n="small"} 1e-09)"), HasSubstr(R"({n="time"} 1794793728.45)")));
}

TEST(Metrics, AskingTwiceGivesTheSameObject) {
  Metrics metrics;
  EXPECT_EQ(&metrics.counter("a_total", "As."), &metrics.counter("a_total", "As."));
  EXPECT_EQ(&metrics.gauge_family("b", "Bs.", {"x"}), &metrics.gauge_family("b", "Bs.", {"x"}));
  auto& family = metrics.histogram_family("c", "Cs.", {"x", "y"}, {1, 2});
  EXPECT_EQ(&family.with({"1", "2"}), &family.with({"1", "2"}));
  EXPECT_NE(&family.with({"1", "2"}), &family.with({"12", ""})) << "values are not just joined";
  EXPECT_NE(&family.with({"1", "2"}), &family.with({"2", "1"}));
}

std::string refusal(const std::function<void()>& ask) {
  try {
    ask();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Metrics, AskingForTheSameNameAsSomethingElseIsRefused) {
  Metrics metrics;
  metrics.counter_family("a_total", "As.", {"x"});
  metrics.gauge("b", "Bs.");
  metrics.histogram("c", "Cs.", {1});
  EXPECT_THAT(refusal([&] { metrics.counter("a_total", "As."); }), HasSubstr("a_total"));
  EXPECT_THAT(refusal([&] { metrics.counter_family("a_total", "As.", {"y"}); }), HasSubstr("a_total"));
  EXPECT_THAT(refusal([&] { metrics.histogram("b", "Bs.", {1}); }), HasSubstr("'b' exists already"));
  EXPECT_THAT(refusal([&] { metrics.histogram("c", "Cs.", {2}); }), HasSubstr("other buckets"));
  // In OpenMetrics both families would be called "a".
  EXPECT_THAT(refusal([&] { metrics.gauge("a", "As."); }), HasSubstr("too close to 'a_total'"));
}

TEST(Metrics, WhatPromtoolWouldComplainOfIsRefused) {
  Metrics metrics;
  EXPECT_THAT(refusal([&] { metrics.counter("a", "As."); }), HasSubstr("must end in _total"));
  EXPECT_THAT(refusal([&] { metrics.gauge("a_total", "As."); }), HasSubstr("must not end in _total"));
  EXPECT_THAT(refusal([&] { metrics.gauge("a_count", "As."); }), HasSubstr("_count"));
  EXPECT_THAT(refusal([&] { metrics.gauge("a", ""); }), HasSubstr("help"));
  EXPECT_THAT(refusal([&] { metrics.gauge("a b", "As."); }), HasSubstr("name"));
  EXPECT_THAT(refusal([&] { metrics.gauge("", "As."); }), HasSubstr("name"));
  EXPECT_THAT(refusal([&] { metrics.gauge_family("a", "As.", {"not ok"}); }), HasSubstr("not ok"));
  EXPECT_THAT(refusal([&] { metrics.gauge_family("a", "As.", {"x", "x"}); }), HasSubstr("twice"));
  EXPECT_THAT(refusal([&] { metrics.histogram_family("a", "As.", {"le"}, {1}); }), HasSubstr("le"));
  EXPECT_THAT(refusal([&] { metrics.histogram("a", "As.", {}); }), HasSubstr("bucket"));
  EXPECT_THAT(refusal([&] { metrics.histogram("a", "As.", {2, 1}); }), HasSubstr("do not grow"));
  EXPECT_THAT(refusal([&] { metrics.histogram("a", "As.", {1, 1}); }), HasSubstr("do not grow"));
}

TEST(Metrics, AWrongNumberOfLabelValuesNamesTheMetric) {
  Metrics metrics;
  auto& family = metrics.counter_family("a_total", "As.", {"x", "y"});
  EXPECT_THAT(refusal([&] { family.with({"1"}); }), AllOf(HasSubstr("a_total"), HasSubstr("2 labels")));
  EXPECT_THAT(refusal([&] { family.with({"1", "2", "3"}); }), HasSubstr("3 values"));
}

// A label taken from what users name things must not be able to fill the memory, here or in Prometheus.
TEST(Metrics, BeyondTheLimitAllFurtherSeriesAreOne) {
  Metrics metrics;
  auto& family = metrics.counter_family("a_total", "As.", {"x", "y"}, 10);
  for (int i = 0; i < 1000; ++i) family.with({std::to_string(i), "y"}).increment();
  EXPECT_EQ(family.series(), 11U);
  EXPECT_EQ(family.with({"3", "y"}).value(), 1) << "the first ones keep their own";
  EXPECT_EQ(family.with({"other", "other"}).value(), 990);
  EXPECT_THAT(metrics.text(), HasSubstr("a_total{x=\"other\",y=\"other\"} 990\n"));
  EXPECT_THAT(metrics.text(), Not(HasSubstr("\"999\"")));
}

TEST(Metrics, ReferencesStayValidWhileSeriesAreAdded) {
  Metrics metrics;
  auto& family = metrics.counter_family("a_total", "As.", {"x"}, 10'000);
  auto& first = family.with({"first"});
  for (int i = 0; i < 5000; ++i) family.with({std::to_string(i)});
  first.increment();
  EXPECT_EQ(&first, &family.with({"first"}));
  EXPECT_EQ(first.value(), 1);
}

TEST(Metrics, GaugesAreRefreshedAtEachScrape) {
  Metrics metrics;
  auto& gauge = metrics.gauge("a", "As.");
  int scrapes = 0;
  metrics.on_collect([] { throw std::runtime_error("this source cannot be read"); });
  metrics.on_collect([&] { gauge.set(++scrapes); });
  // Also new ones may appear while scraping.
  metrics.on_collect([&] { metrics.gauge("b", "Bs.").set(1); });
  EXPECT_THAT(metrics.text(), AllOf(HasSubstr("\na 1\n"), HasSubstr("\nb 1\n")));
  EXPECT_THAT(metrics.open_metrics(), HasSubstr("\na 2\n"));
}

TEST(Metrics, AScopedHookEndsWithItsOwner) {
  ScrapeHook outlives;
  {
    Metrics metrics;
    auto& gauge = metrics.gauge("a", "As.");
    {
      auto hook = metrics.while_alive_on_collect([&] { gauge.add(1); });
      (void)metrics.text();
      auto moved = std::move(hook);
      (void)metrics.text();
    }
    (void)metrics.text();
    EXPECT_EQ(gauge.value(), 2);
    outlives = metrics.while_alive_on_collect([&] { gauge.add(1); });
    outlives = metrics.while_alive_on_collect([&] { gauge.add(10); });
    (void)metrics.text();
    EXPECT_EQ(gauge.value(), 12) << "the first one was replaced";
  }
}

TEST(Metrics, BucketsGrowByTheirFactor) {
  EXPECT_THAT(exponential_buckets(0.5, 2, 4), testing::ElementsAre(0.5, 1, 2, 4));
  EXPECT_THAT(exponential_buckets(1, 2, 0), testing::IsEmpty());
}

TEST(Metrics, ThreadsMayCountCreateAndScrapeAtOnce) {
  Metrics metrics;
  auto& family = metrics.counter_family("a_total", "As.", {"x"}, 20);
  auto& histogram = metrics.histogram("b", "Bs.", {1});
  constexpr int threads = 4;
  constexpr int each = 2000;
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        family.with({std::to_string(i % 50)}).increment();
        histogram.observe(1);
        metrics.gauge("c", "Cs.").add(1);
        if (i % 200 == 0) EXPECT_FALSE(metrics.text().empty());
      }
    });
  for (auto& worker : workers) worker.join();
  double total = family.with({"other"}).value();
  for (int i = 0; i < 20; ++i) total += family.with({std::to_string(i)}).value();
  EXPECT_EQ(total, threads * each);
  EXPECT_EQ(histogram.count(), static_cast<std::uint64_t>(threads * each));
  EXPECT_EQ(metrics.gauge("c", "Cs.").value(), threads * each);
}

TEST(ProcessMetrics, DescribeThisProcess) {
  Metrics metrics;
  add_process_metrics(metrics);
  add_build_info(metrics);
  // Enough work to be seen in hundredths of a second.
  volatile double sink = 0;
  const auto& used = metrics.counter("process_cpu_seconds_total", "x");
  for (int round = 0; round < 1000 && used.value() <= 0; ++round) {
    for (int i = 0; i < 1'000'000; ++i) sink = sink + 1;
    (void)metrics.text();
  }
  EXPECT_GT(used.value(), 0);
  EXPECT_GT(metrics.gauge("process_resident_memory_bytes", "x").value(), 1e6);
  EXPECT_GT(metrics.gauge("process_virtual_memory_bytes", "x").value(),
            metrics.gauge("process_resident_memory_bytes", "x").value());
  EXPECT_GE(metrics.gauge("process_open_fds", "x").value(), 3);
  EXPECT_GT(metrics.gauge("process_max_fds", "x").value(), metrics.gauge("process_open_fds", "x").value());
  const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto start = metrics.gauge("process_start_time_seconds", "x").value();
  EXPECT_GT(start, now - 3600);
  EXPECT_LT(start, now + 60);
  EXPECT_THAT(metrics.text(), HasSubstr("hubferry_build_info{"));
}

class MetricsPageTest : public testing::Test {
 protected:
  std::string content_type(const std::string& accept) {
    return metrics_handler(metrics_)(HttpRequest{.path = "/metrics", .query = {}, .accept = accept}).content_type;
  }

  Metrics metrics_;
  const std::string text_ = "text/plain; version=0.0.4; charset=utf-8";
  const std::string open_metrics_ = "application/openmetrics-text; version=1.0.0; charset=utf-8";
};

TEST_F(MetricsPageTest, TheFormatIsWhatTheClientPrefers) {
  EXPECT_EQ(content_type(""), text_);
  EXPECT_EQ(content_type("*/*"), text_);
  EXPECT_EQ(content_type("text/plain"), text_);
  EXPECT_EQ(content_type("application/openmetrics-text"), open_metrics_);
  EXPECT_EQ(content_type("application/openmetrics-text; version=1.0.0; charset=utf-8"), open_metrics_);
  EXPECT_EQ(content_type("text/plain;q=0.4, application/openmetrics-text;q=0.6"), open_metrics_);
  EXPECT_EQ(content_type("text/plain;q=0.6, application/openmetrics-text;q=0.4"), text_);
  EXPECT_EQ(content_type("application/openmetrics-text;q=0, */*"), text_);
  EXPECT_EQ(content_type("application/openmetrics-text;version=0.0.1"), text_) << "a version that is not spoken here";
  EXPECT_EQ(content_type("image/png"), text_);
  // What Prometheus 2.42 sends.
  EXPECT_EQ(content_type("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
                         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            open_metrics_);
}

TEST_F(MetricsPageTest, OtherPathsAreNotFound) {
  EXPECT_EQ(metrics_handler(metrics_)(HttpRequest{.path = "/", .query = {}, .accept = ""}).status, 404);
}

}  // namespace
}  // namespace hubferry::obs
