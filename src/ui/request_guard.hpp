#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hubferry::ui {

/// Whether a request with this header Host may be answered by a server that listens on `listens_on` (empty: all
/// interfaces). On a loopback address only loopback names are: a site that lets its own name resolve to 127.0.0.1 (DNS
/// rebinding) would otherwise read the page with its visitor's browser. Elsewhere the name is the administrator's
/// choice.
bool is_expected_host(std::string_view listens_on, std::string_view host_header);

/// Headers of every answer: only its own scripts, styles and data, in no frame of another site.
const std::vector<std::pair<std::string, std::string>>& security_headers();

}  // namespace hubferry::ui
