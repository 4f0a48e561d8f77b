// Package slacktest is a Slack workspace of our own over real HTTP, for tests and for
// the demo. It keeps the rules that make Slack hard to speak to: a message id per
// post and no idempotency key, ok:false under HTTP 200, channels by name for posting
// and by id for everything else, one message a second in a channel with 429 and
// Retry-After above that, limits on blocks that refuse the whole message, metadata
// that history shows only when asked, and answers that get lost before or after the
// message is stored.
//
// It knows the methods auth.test, chat.postMessage, chat.update, conversations.history, conversations.info,
// conversations.replies, users.conversations, views.open and views.update, and threads
// whose answers the channel shows only when they are broadcast. It makes and signs what
// Slack delivers for clicks and forms, whose triggers open one form and expire, and takes
// what people are told alone. What it refuses it refuses with
// Slack's own words.
package slacktest
