#include "sim/apiserver/store.hpp"

#include <boost/json/array.hpp>
#include <boost/json/memory_resource.hpp>
#include <boost/json/string.hpp>
#include <cstddef>
#include <memory>
#include <new>

namespace hubferry::sim {

namespace json = kube::json;

namespace {

/// Allocates from one block until it is sealed or full, then from the heap. A copy of a JSON value inherits the
/// original's memory resource, so this one must stay usable, and thread-safe, for the lifetime of all copies.
class Block final : public boost::json::memory_resource {
 public:
  /// `self` is set to this object: a shared resource contains it, but only returns a pointer to itself.
  Block(std::size_t size, Block*& self) : begin_(std::make_unique_for_overwrite<std::byte[]>(size)), free_(size) {
    next_ = begin_.get();
    end_ = next_ + size;
    self = this;
  }

  void seal() { free_ = 0; }

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    if (free_ != 0) {
      void* at = next_;
      std::size_t room = free_;
      if (std::align(alignment, size, at, room) != nullptr) {
        next_ = static_cast<std::byte*>(at) + size;
        free_ = room - size;
        return at;
      }
    }
    // The library's function for any alignment is several times slower.
    return alignment <= usual ? ::operator new(size) : ::operator new(size, std::align_val_t{alignment});
  }

  void do_deallocate(void* memory, std::size_t size, std::size_t alignment) override {
    const auto* at = static_cast<std::byte*>(memory);
    if (std::less_equal<>{}(begin_.get(), at) && std::less<>{}(at, end_)) return;
    if (alignment <= usual)
      ::operator delete(memory, size);
    else
      ::operator delete(memory, size, std::align_val_t{alignment});
  }

  static constexpr std::size_t usual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::unique_ptr<std::byte[]> begin_;
  std::byte* next_ = nullptr;
  const std::byte* end_ = nullptr;
  std::size_t free_;
};

// The sizes of Boost.JSON's tables; an error here costs a little memory, never correctness.
constexpr std::size_t table_header = 16;
constexpr std::size_t short_string = 14;

/// Computes what a copy will allocate, in the same order and with the same alignment.
class Sizer {
 public:
  void add(const json::object& object) {
    if (object.empty()) return;
    std::size_t table = table_header + object.size() * sizeof(json::key_value_pair);
    if (object.size() > 18) table += object.size() * sizeof(std::uint32_t);
    take_aligned(table);
    for (const auto& [key, value] : object) {
      size_ += key.size() + 1;
      add(value);
    }
  }

  void add(const json::value& value) {
    if (const auto* object = value.if_object()) {
      add(*object);
    } else if (const auto* text = value.if_string()) {
      if (text->size() > short_string) take_aligned(text->size() + 9);
    } else if (const auto* array = value.if_array(); array != nullptr && !array->empty()) {
      take_aligned(table_header + array->size() * sizeof(json::value));
      for (const auto& item : *array) add(item);
    }
  }

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  void take_aligned(std::size_t size) { size_ = ((size_ + 7) & ~std::size_t{7}) + size; }

  std::size_t size_ = 0;
};

}  // namespace

kube::Object compact_object(const json::object& object) {
  Sizer sizer;
  sizer.add(object);
  Block* block = nullptr;
  auto resource = boost::json::make_shared_resource<Block>(sizer.size() + 16, block);
  json::object copy{object, resource};
  block->seal();
  return kube::Object{std::move(copy)};
}

}  // namespace hubferry::sim
