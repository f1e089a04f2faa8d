#include "sim/apiserver/key_pool.hpp"

#include <openssl/pem.h>

#include <stdexcept>

#include "hubferry/kube/openssl.hpp"

namespace hubferry::sim {

namespace {

constexpr std::size_t most_keys = 64;
// Of which the content is remembered: a certificate is read a few times while its agent connects, and then no more.
constexpr std::size_t most_chains = 1024;

}  // namespace

KeyPool::~KeyPool() {
  for (auto& entry : entries_) EVP_PKEY_free(entry->key);
}

void KeyPool::add() {
  auto entry = std::make_unique<Entry>();
  kube::openssl::Key key{EVP_EC_gen("P-256")};
  const auto text = kube::openssl::make_bio();
  if (key == nullptr ||
      PEM_write_bio_PrivateKey_traditional(text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    throw std::runtime_error("certificates: cannot generate a key");
  entry->pem = kube::openssl::content_of(text);
  entry->public_bits = kube::openssl::public_bits(key.get());
  entry->key = key.release();
  by_text_.emplace(entry->pem, entry.get());
  by_bits_.emplace(entry->public_bits, entry.get());
  entries_.push_back(std::move(entry));
}

void KeyPool::fill() {
  while (entries_.size() < most_keys) add();
}

const KeyPool::Entry& KeyPool::next() {
  if (next_ >= entries_.size() && entries_.size() < most_keys) add();
  next_ %= entries_.size();
  return *entries_[next_++];
}

klusterlet::SigningRequest KeyPool::make_request(const klusterlet::Identity& identity) {
  const auto& entry = next();
  return {obs::Secret{entry.pem}, klusterlet::sign_request(identity, entry.key, entry.public_bits), entry.public_bits};
}

/// Each agent reads its certificate several times, and the server once more.
klusterlet::CertificateChain KeyPool::read(const std::string& pem) {
  if (chains_.size() >= most_chains) chains_.clear();
  const auto [known, is_new] = chains_.try_emplace(pem);
  if (is_new) known->second = klusterlet::fresh_keys().read(pem);
  return known->second;
}

void KeyPool::remember(const std::string& pem, klusterlet::CertificateChain chain) {
  if (chains_.size() >= most_chains) chains_.clear();
  chains_.insert_or_assign(pem, std::move(chain));
}

bool KeyPool::fits(const std::string& certificate_pem, const obs::Secret& key) {
  if (const auto* entry = find_private(key.reveal())) return read(certificate_pem).public_key == entry->public_bits;
  return klusterlet::is_key_of(certificate_pem, key);
}

const KeyPool::Entry* KeyPool::find_private(const std::string& pem) const {
  const auto found = by_text_.find(pem);
  return found == by_text_.end() ? nullptr : found->second;
}

const KeyPool::Entry* KeyPool::find_public(const std::string& bits) const {
  const auto found = by_bits_.find(bits);
  return found == by_bits_.end() ? nullptr : found->second;
}

}  // namespace hubferry::sim
