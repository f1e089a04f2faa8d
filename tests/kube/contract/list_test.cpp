// Lists: selectors, pages, versions.
#include "kube/contract/contract.hpp"

namespace hubferry::contract {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_P(KubeContract, AListIsSortedByName) {
  run([&]() -> Awaitable<> {
    for (const auto* name : {"c", "a", "b"}) co_await make_config_map(name);
    auto found = co_await names(here());
    EXPECT_THAT(found, ElementsAre("a", "b", "c"));
  });
}

TEST_P(KubeContract, AnEmptyListHasAVersionToWatchFrom) {
  run([&]() -> Awaitable<> {
    ListOptions options = here();
    options.label_selector = "nobody=has-this";
    auto page = co_await api().list(resources::config_maps, options, object_decoder());
    CO_ASSERT_TRUE(page.has_value());
    EXPECT_THAT(page->items, IsEmpty());
    EXPECT_FALSE(page->resource_version.empty());
    EXPECT_TRUE(page->continue_token.empty());
  });
}

TEST_P(KubeContract, LabelSelectorsOfEveryForm) {
  run([&]() -> Awaitable<> {
    for (const auto* value : {"red", "green", "blue"})
      co_await api().create(resources::config_maps, labelled(value, "color", value));
    co_await make_config_map("plain");
    const std::vector<std::pair<std::string, std::vector<std::string>>> expected{
        {"color=red", {"red"}},
        {"color==red", {"red"}},
        {"color!=red", {"blue", "green", "plain"}},
        {"color in (red,blue)", {"blue", "red"}},
        {"color notin (red,blue)", {"green", "plain"}},
        {"color", {"blue", "green", "red"}},
        {"!color", {"plain"}},
        {"color,color!=red", {"blue", "green"}},
    };
    for (const auto& [selector, wanted] : expected) {
      ListOptions options = here();
      options.label_selector = selector;
      auto found = co_await names(options);
      EXPECT_EQ(found, wanted) << selector;
    }
  });
}

TEST_P(KubeContract, FieldSelectorsFindByNameAndNamespace) {
  run([&]() -> Awaitable<> {
    for (const auto* name : {"a", "b"}) co_await make_config_map(name);
    ListOptions options = here();
    options.field_selector = "metadata.name=b";
    auto one = co_await names(options);
    EXPECT_THAT(one, ElementsAre("b"));
    options.field_selector = "metadata.name!=b";
    auto others = co_await names(options);
    EXPECT_THAT(others, ElementsAre("a"));
    ListOptions everywhere;
    everywhere.field_selector = "metadata.namespace=" + ns();
    auto all = co_await names(everywhere);
    EXPECT_THAT(all, ElementsAre("a", "b"));
  });
}

TEST_P(KubeContract, ASelectorThatMakesNoSenseIsInvalid) {
  run([&]() -> Awaitable<> {
    ListOptions options = here();
    options.label_selector = "a=(";
    auto label = co_await api().list(resources::config_maps, options, object_decoder());
    expect_error(label, ErrorKind::invalid);
    options.label_selector.clear();
    options.field_selector = "data.k=v";
    auto field = co_await api().list(resources::config_maps, options, object_decoder());
    expect_error(field, ErrorKind::invalid);
  });
}

TEST_P(KubeContract, AListOfAllNamespacesHoldsEachOnce) {
  run([&]() -> Awaitable<> {
    const std::string mark = unique_name("m");
    co_await api().create(resources::config_maps, labelled("a", "mark", mark));
    json::object elsewhere = labelled(unique_name("contract-"), "mark", mark);
    elsewhere["metadata"].get_object()["namespace"] = "default";
    auto made = co_await api().create(resources::config_maps, elsewhere);
    CO_ASSERT_TRUE(made.has_value());
    at_end(resources::config_maps, made->key());
    ListOptions everywhere;
    everywhere.label_selector = "mark=" + mark;
    auto all = co_await api().list_all(resources::config_maps, everywhere);
    CO_ASSERT_TRUE(all.has_value());
    EXPECT_EQ(all->size(), 2U);
  });
}

TEST_P(KubeContract, PagesCutAListWithoutLossOrRepetition) {
  run([&]() -> Awaitable<> {
    for (int i = 10; i < 20; ++i) co_await make_config_map("n" + std::to_string(i));
    ListOptions options = here();
    options.label_selector = "!no-such-label";
    options.field_selector = "metadata.name!=kube-root-ca.crt";
    options.limit = 4;
    std::vector<std::string> found;
    std::vector<std::size_t> sizes;
    do {
      auto page = co_await api().list(resources::config_maps, options, object_decoder());
      CO_ASSERT_TRUE(page.has_value());
      sizes.push_back(page->items.size());
      for (const auto& item : page->items) found.push_back(item.key.name);
      options.continue_token = page->continue_token;
    } while (!options.continue_token.empty());
    EXPECT_THAT(sizes, ElementsAre(4, 4, 2));
    EXPECT_EQ(found.size(), 10U);
    EXPECT_TRUE(std::ranges::is_sorted(found));
  });
}

// The pages of one list show one moment, whatever happens meanwhile.
TEST_P(KubeContract, PagesStayConsistentWhileObjectsChange) {
  run([&]() -> Awaitable<> {
    for (int i = 0; i < 6; ++i) co_await make_config_map("n" + std::to_string(i), "old");
    ListOptions options = here();
    options.limit = 2;
    auto first = co_await api().list(resources::config_maps, options, object_decoder());
    CO_ASSERT_TRUE(first.has_value());
    co_await api().remove(resources::config_maps, key("n3"));
    co_await api().update(resources::config_maps, config_map("n4", "new"));
    co_await make_config_map("n9", "new");
    std::vector<std::string> found;
    for (const auto& item : first->items) found.push_back(item.key.name);
    options.continue_token = first->continue_token;
    while (!options.continue_token.empty()) {
      auto page = co_await api().list(resources::config_maps, options, object_decoder());
      CO_ASSERT_TRUE(page.has_value());
      EXPECT_EQ(page->resource_version, first->resource_version);
      for (const auto& item : page->items) {
        found.push_back(item.key.name);
        EXPECT_EQ(object_of(item).string_at({"data", "k"}), "old") << item.key.name;
      }
      options.continue_token = page->continue_token;
    }
    EXPECT_THAT(found, ElementsAre("n0", "n1", "n2", "n3", "n4", "n5"));
  });
}

TEST_P(KubeContract, AContinueTokenThatIsGarbageIsInvalid) {
  run([&]() -> Awaitable<> {
    ListOptions options = here();
    options.continue_token = "garbage";
    auto page = co_await api().list(resources::config_maps, options, object_decoder());
    expect_error(page, ErrorKind::invalid);
  });
}

TEST_P(KubeContract, AContinueTokenFromBeforeACompactionIsGone) {
  run([&]() -> Awaitable<> {
    for (int i = 0; i < 6; ++i) co_await make_config_map("n" + std::to_string(i));
    ListOptions options = here();
    options.limit = 2;
    auto first = co_await api().list(resources::config_maps, options, object_decoder());
    CO_ASSERT_TRUE(first.has_value());
    co_await make_config_map("later");
    co_await world().compact();
    options.continue_token = first->continue_token;
    auto second = co_await api().list(resources::config_maps, options, object_decoder());
    expect_error(second, ErrorKind::gone);
    auto all = co_await names(here());
    EXPECT_EQ(all.size(), 7U) << "a fresh list works";
  });
}

TEST_P(KubeContract, AListNotOlderThanOurWriteShowsIt) {
  run([&]() -> Awaitable<> {
    auto made = co_await make_config_map("a");
    ListOptions options = here();
    options.limit = 0;
    options.resource_version = std::string{made.resource_version()};
    options.resource_version_match = "NotOlderThan";
    auto found = co_await names(options);
    EXPECT_THAT(found, ElementsAre("a"));
  });
}

TEST_P(KubeContract, AnExactListShowsThePast) {
  run([&]() -> Awaitable<> {
    auto made = co_await make_config_map("a");
    co_await make_config_map("b");
    co_await api().remove(resources::config_maps, key("a"));
    ListOptions options = here();
    options.resource_version = std::string{made.resource_version()};
    options.resource_version_match = "Exact";
    auto past = co_await names(options);
    EXPECT_THAT(past, ElementsAre("a"));
    auto now = co_await names(here());
    EXPECT_THAT(now, ElementsAre("b"));
  });
}

TEST_P(KubeContract, AListFromTheServersCacheIsAnswered) {
  run([&]() -> Awaitable<> {
    co_await make_config_map("a");
    ListOptions options = here();
    options.resource_version = "0";
    auto page = co_await api().list(resources::config_maps, options, object_decoder());
    CO_ASSERT_TRUE(page.has_value());
    EXPECT_FALSE(page->resource_version.empty());
  });
}

TEST_P(KubeContract, AListWithAVersionThatIsNoneIsInvalid) {
  run([&]() -> Awaitable<> {
    ListOptions options = here();
    options.limit = 0;
    options.resource_version = "garbage";
    auto page = co_await api().list(resources::config_maps, options, object_decoder());
    expect_error(page, ErrorKind::invalid);
  });
}

}  // namespace
}  // namespace hubferry::contract
