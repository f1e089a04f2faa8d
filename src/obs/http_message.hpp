#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hubferry/async/types.hpp"
#include "hubferry/obs/http_types.hpp"

namespace hubferry::obs {

/// Splits and decodes "/readyz?verbose&exclude=a". nullopt when it is malformed.
std::optional<HttpRequest> parse_target(std::string_view target);

/// How a client weighs one choice, from 0 (no) to 1: the q value of the most specific entry that fits.
/// `parameters` such as "version=1.0.0" must be named by the entry with that value, or not at all.
double media_quality(std::string_view accept, std::string_view type, std::string_view parameter);

/// Whether an Accept-Encoding header allows gzip.
bool accepts_gzip(std::string_view accept_encoding);

std::string_view reason_phrase(int status);

/// "Sun, 06 Nov 1994 08:49:37 GMT".
std::string http_date(async::WallTime time);

struct HeadOptions {
  bool keep_alive = true;
  bool gzipped = false;
  bool http10 = false;
  bool has_length = true;  // false: the answer ends with the connection
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// Status line and header of an answer, to the empty line. The content's length is that of response.body.
std::string response_head(const HttpResponse& response, HeadOptions options, async::WallTime now,
                          const HttpHeaders& more = {});

/// `text` as a gzip file.
std::string gzip(std::string_view text);

}  // namespace hubferry::obs
