#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "hubferry/async/deadline.hpp"
#include "hubferry/mysql/exporter.hpp"

namespace hubferry::mysql {

namespace {

namespace asio = async::asio;
using asio::ip::tcp;

// An exporter's page has some 60 KiB; whatever sends more is no exporter.
constexpr std::size_t longest_page = 4 * 1024 * 1024;

// HTTP/1.0: the answer ends with the connection and is never chunked.
constexpr std::string_view request =
    "GET /metrics?collect[]=global_variables&collect[]=slave_status HTTP/1.0\r\n"
    "Host: exporter\r\nX-Prometheus-Scrape-Timeout-Seconds: 4\r\n\r\n";

async::Awaitable<std::optional<std::string>> get_page(std::string host, std::uint16_t port) {
  async::error_code failure;
  const auto address = asio::ip::make_address(host, failure);
  if (failure) co_return std::nullopt;
  tcp::socket socket{co_await asio::this_coro::executor};
  const auto [refused] =
      co_await socket.async_connect(tcp::endpoint{address, port}, asio::as_tuple(asio::use_awaitable));
  if (refused) co_return std::nullopt;
  const auto [lost, sent] =
      co_await asio::async_write(socket, asio::buffer(request), asio::as_tuple(asio::use_awaitable));
  if (lost) co_return std::nullopt;
  std::string page;
  const auto [end, size] =
      co_await asio::async_read(socket, asio::dynamic_buffer(page, longest_page), asio::as_tuple(asio::use_awaitable));
  if (end != asio::error::eof) co_return std::nullopt;
  const auto head_end = page.find("\r\n\r\n");
  const bool is_ok = page.starts_with("HTTP/1.") && page.find(" 200 ") == 8;
  if (!is_ok || head_end == std::string::npos) co_return std::nullopt;
  page.erase(0, head_end + 4);
  co_return page;
}

class HttpExporter final : public Exporter {
 public:
  explicit HttpExporter(async::Clock& clock) : clock_(clock) {}

  async::Awaitable<std::optional<std::string>> scrape(std::string host, std::uint16_t port,
                                                      async::TimePoint deadline) override {
    auto page = co_await async::before_deadline(clock_, deadline, get_page(std::move(host), port));
    co_return page ? std::move(*page) : std::nullopt;
  }

 private:
  async::Clock& clock_;
};

}  // namespace

std::unique_ptr<Exporter> make_http_exporter(async::Clock& clock) {
  return std::make_unique<HttpExporter>(clock);
}

}  // namespace hubferry::mysql
