#include "kube/http/connection.hpp"

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstring>

namespace hubferry::kube::http {

namespace beast_http = boost::beast::http;

namespace {

constexpr std::size_t first_buffer = 8UL * 1024;      // most answers fit
constexpr std::size_t largest_buffer = 256UL * 1024;  // where much is coming, fewer reads
constexpr std::uint32_t header_limit = 64 * 1024;
constexpr int max_informational = 10;  // answers before the answer

/// A body that grows with the bytes received. Beast's string_body reserves what Content-Length claims, and any server
/// can claim more memory than there is.
struct ReceivedBody {
  using value_type = std::string;

  class reader {
   public:
    template <bool is_request, typename Fields>
    reader(beast_http::header<is_request, Fields>&, value_type& body) : body_(body) {}

    void init(const boost::optional<std::uint64_t>&, error_code& error) { error = {}; }
    template <typename Buffers>
    std::size_t put(const Buffers& buffers, error_code& error) {
      error = {};
      const std::size_t before = body_.size();
      for (const auto buffer : boost::beast::buffers_range_ref(buffers))
        body_.append(static_cast<const char*>(buffer.data()), buffer.size());
      return body_.size() - before;
    }
    void finish(error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

}  // namespace

/// The answer being read. Bytes between `begin` and `end` of the buffer are read but not yet parsed.
struct Connection::Parsing {
  std::optional<beast_http::response_parser<ReceivedBody>> parser;
  std::vector<char> buffer;
  std::size_t begin = 0;
  std::size_t end = 0;
  bool any_byte = false;
  bool clean_end = false;
  bool unexpected = false;  // an answer that was not asked for: who knows what else will come

  asio::mutable_buffer room() {
    if (begin > 0) {
      std::memmove(buffer.data(), buffer.data() + begin, end - begin);
      end -= begin;
      begin = 0;
    }
    if (buffer.size() < first_buffer) buffer.resize(first_buffer);
    // The parser leaves little behind, unless a head or a chunk's extension has no end: then no room is made.
    if (end == buffer.size() && buffer.size() < largest_buffer) buffer.resize(buffer.size() * 2);
    return asio::buffer(buffer.data() + end, buffer.size() - end);
  }

  /// Gives the buffer back, but for what is not parsed yet: there may be thousands of connections that wait. Of a chunk
  /// the end of its last line always is left, since the parser wants it together with the next chunk.
  void release() {
    std::vector<char> rest(buffer.begin() + static_cast<std::ptrdiff_t>(begin),
                           buffer.begin() + static_cast<std::ptrdiff_t>(end));
    buffer.swap(rest);  // an assignment would keep it
    end -= begin;
    begin = 0;
  }

  void received(std::size_t size) {
    any_byte = true;
    end += size;
    // A full buffer means that more was waiting.
    if (end == buffer.size() && buffer.size() < largest_buffer) buffer.resize(buffer.size() * 2);
  }

  void expect_answer(std::size_t body_limit) {
    parser.emplace();
    parser->eager(true);
    parser->header_limit(header_limit);
    if (body_limit == 0)
      parser->body_limit(boost::none);
    else
      parser->body_limit(body_limit);
  }

  /// Parses as much as there is. A Loss means that it is not an answer.
  std::optional<Loss> take() {
    const auto broken = parse();
    if (!broken) return std::nullopt;
    const bool too_large = broken == beast_http::error::body_limit || broken == beast_http::error::header_limit;
    return Loss{Stage::answering,
                too_large ? "the answer is larger than allowed" : "the answer is not HTTP: " + broken.message(), false,
                true};
  }

 private:
  error_code parse() {
    while (begin < end && !parser->is_done()) {
      error_code error;
      const std::size_t used = parser->put(asio::buffer(buffer.data() + begin, end - begin), error);
      begin += used;
      if (error == beast_http::error::need_more) return {};
      if (error) return error;
      if (used == 0) break;
    }
    return {};
  }
};

Connection::Connection(std::unique_ptr<Transport> transport, async::Executor loop, async::Clock& clock)
    : transport_(std::move(transport)), clock_(clock), timer_(loop), parsing_(std::make_unique<Parsing>()) {}

Connection::~Connection() = default;

Awaitable<std::optional<Loss>> Connection::begin(std::string_view request, std::size_t body_limit, TimePoint deadline,
                                                 Answer& answer) {
  auto& parsing = *parsing_;
  limit_time(deadline);
  const asio::const_buffer bytes{request.data(), request.size()};
  const auto [error, written] = co_await transport_->write(bytes);
  if (error) co_return lost(Stage::sending, error);

  parsing.expect_answer(body_limit);
  parsing.any_byte = false;
  parsing.clean_end = false;
  for (int informational = 0;;) {
    while (!parsing.parser->is_header_done()) {
      auto loss = co_await read_more();
      if (loss) co_return loss;
    }
    const auto status = parsing.parser->get().result_int();
    if (status >= 200) break;
    // 1xx: the answer is yet to come. Taken for it, it would shift all later answers of the connection by one.
    parsing.unexpected = true;
    if (status == 101 || ++informational > max_informational)
      co_return Loss{Stage::answering, "the answer is not HTTP: status " + std::to_string(status), false, true};
    parsing.expect_answer(body_limit);
    if (auto loss = parsing.take()) co_return loss;
  }

  const auto& head = parsing.parser->get();
  answer.status = static_cast<int>(head.result_int());
  answer.content_type = head[beast_http::field::content_type];
  answer.gzip = head[beast_http::field::content_encoding] == "gzip";
  answer.retry_after = parse_retry_after(head[beast_http::field::retry_after]);
  co_return std::nullopt;
}

Awaitable<std::optional<Loss>> Connection::read_more() {
  auto& parsing = *parsing_;
  const auto room = parsing.room();
  if (room.size() == 0) co_return Loss{Stage::answering, "the answer is not HTTP: a line without an end", false, true};
  const auto [error, size] = co_await transport_->read_some(room);
  const Stage stage = parsing.any_byte ? Stage::answering : Stage::waiting;
  if (error == asio::error::eof && parsing.any_byte) {
    error_code incomplete;
    parsing.parser->put_eof(incomplete);
    if (!incomplete) co_return std::nullopt;
    co_return lost(stage, error);
  }
  if (error) co_return lost(stage, error);
  parsing.received(size);
  co_return parsing.take();
}

Awaitable<std::optional<Loss>> Connection::read_body(TimePoint deadline, std::string& chunk) {
  auto& parser = *parsing_->parser;
  auto& body = parser.get().body();
  limit_time(deadline);
  while (body.empty() && !parser.is_done()) {
    // A watch may be silent for an hour.
    parsing_->release();
    std::string{}.swap(body);
    std::string{}.swap(chunk);
    if (const auto failed = co_await transport_->wait_readable()) co_return lost(Stage::answering, failed);
    auto loss = co_await read_more();
    if (loss) co_return loss;
  }
  // Between two reads the caller is at work, and may take its time.
  limit_time(async::never);
  chunk.clear();
  // The two strings take turns, so that neither has to grow anew.
  chunk.swap(body);
  co_return std::nullopt;
}

Awaitable<std::optional<Loss>> Connection::finish(TimePoint deadline, async::Duration progress_limit,
                                                  std::string& body) {
  auto& parser = *parsing_->parser;
  limit_time(deadline);
  const TimePoint last = async::later(deadline, progress_limit * 10);
  while (!parser.is_done()) {
    auto loss = co_await read_more();
    if (loss) co_return loss;
    if (progress_limit > async::Duration{0})
      limit_time(std::min(last, std::max(deadline, async::later(clock_.now(), progress_limit))));
  }
  body = std::move(parser.get().body());
  co_return std::nullopt;
}

bool Connection::reusable() const {
  const auto& parsing = *parsing_;
  return parsing.parser && parsing.parser->is_done() && parsing.parser->keep_alive() && !parsing.unexpected &&
         parsing.begin == parsing.end && !transport_->has_unread();
}

void Connection::park(TimePoint deadline, std::function<void()> on_expired) {
  parsing_->parser.reset();
  parsing_->release();
  transport_->release_buffers();
  on_expired_ = std::move(on_expired);
  limit_time(deadline);
}

bool Connection::unpark() {
  on_expired_ = nullptr;
  return !out_of_time_ && transport_->still_good();
}

void Connection::close() noexcept {
  transport_->close();
}

Loss Connection::lost(Stage stage, error_code error) const {
  if (out_of_time_)
    return {stage, stage == Stage::sending ? "sending took too long" : "no answer in time", true, false};
  if (error == asio::error::operation_aborted) async::throw_cancelled();
  if (error == asio::error::eof) return {stage, "the server closed the connection", false, false};
  return {stage, "the connection was lost: " + error.message(), false, false, is_certificate_alert(error)};
}

void Connection::limit_time(TimePoint deadline) {
  deadline_ = deadline;
  if (deadline_ < timer_fires_) arm_timer();
}

void Connection::arm_timer() {
  timer_fires_ = deadline_;
  timer_.expires_after(std::max(deadline_ - clock_.now(), async::Duration{0}));
  timer_.async_wait([weak = weak_from_this()](error_code error) {
    if (error) return;
    if (const auto self = weak.lock()) self->time_is_up();
  });
}

void Connection::time_is_up() {
  timer_fires_ = async::never;
  if (deadline_ == async::never) return;
  if (clock_.now() < deadline_) {
    arm_timer();
    return;
  }
  out_of_time_ = true;
  transport_->close();
  if (auto expired = std::exchange(on_expired_, nullptr)) expired();
}

}  // namespace hubferry::kube::http
