#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hubferry/klusterlet/local_store.hpp"

namespace hubferry::klusterlet {

/// A list of hubs that a hub has sent to an agent whose own list is in files. The files are the administrator's and are
/// never written; this list is kept beside the credential.
struct SentList {
  std::vector<BootstrapConfig> hubs;
  std::optional<Duration> timeout;
  /// The hubs of the files at that time, and the digests of their texts: to notice that the administrator has edited
  /// them since.
  std::map<std::string, std::string> configured;

  bool operator==(const SentList&) const = default;
};

SentList make_sent_list(std::vector<BootstrapConfig> hubs, std::optional<Duration> timeout,
                        const std::vector<BootstrapConfig>& configured);

/// The list in effect. An administrator who configures other hubs replaces what was sent; one who edits the credential
/// of a hub replaces that credential.
std::vector<BootstrapConfig> list_in_effect(const std::optional<SentList>& sent,
                                            const std::vector<BootstrapConfig>& configured);

/// As text, and back; nullopt if it is no such text. It contains credentials.
obs::Secret to_text(const SentList& list);
std::optional<SentList> parse_sent_list(const std::string& text);

}  // namespace hubferry::klusterlet
