package slacktest

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Slack's limits: documented ones, and the undocumented one on a whole message, found
// by others at about 13,200 characters.
const (
	maxText    = 40000
	maxBlocks  = 50
	maxHeader  = 150
	maxSection = 3000
	maxField   = 2000
	maxFields  = 10
	maxTotal   = 13200
	maxButtons = 25
	maxButton  = 75
	maxValue   = 2000
	maxID      = 255
)

// textObject and block are what we know of Block Kit.
type textObject struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type block struct {
	Type     string       `json:"type"`
	ID       string       `json:"block_id"`
	Text     *textObject  `json:"text"`
	Fields   []textObject `json:"fields"`
	Elements []element    `json:"elements"`
}

// element is a button.
type element struct {
	Type     string     `json:"type"`
	ActionID string     `json:"action_id"`
	Value    string     `json:"value"`
	Text     textObject `json:"text"`
}

// Refusal gives the word with which Slack would refuse a message for its form; empty
// when it would take it.
func Refusal(text string, blocks json.RawMessage) string {
	if utf8.RuneCountInString(text) > maxText {
		return "msg_too_long"
	}
	if len(blocks) == 0 {
		if text == "" {
			return "no_text"
		}
		return ""
	}
	var list []block
	if json.Unmarshal(blocks, &list) != nil {
		return "invalid_blocks_format"
	}
	if len(list) > maxBlocks {
		return "invalid_blocks"
	}
	total := 0
	ids := map[string]bool{}
	for _, b := range list {
		if !b.valid() || b.ID != "" && ids[b.ID] {
			return "invalid_blocks"
		}
		ids[b.ID] = true
		for _, t := range b.texts() {
			total += utf8.RuneCountInString(t.Text)
		}
	}
	if total > maxTotal {
		return "msg_blocks_too_long"
	}
	return ""
}

func (b block) texts() []textObject {
	list := append([]textObject(nil), b.Fields...)
	for _, e := range b.Elements {
		list = append(list, e.Text)
	}
	if b.Text != nil {
		list = append([]textObject{*b.Text}, list...)
	}
	return list
}

func (b block) valid() bool {
	switch b.Type {
	case "divider":
		return true
	case "header":
		return b.Text != nil && b.Text.Type == "plain_text" && within(*b.Text, maxHeader)
	case "actions":
		return b.validButtons()
	case "section":
	default:
		return false
	}
	if b.Text == nil && len(b.Fields) == 0 || len(b.Fields) > maxFields || b.Text != nil && !within(*b.Text, maxSection) {
		return false
	}
	for _, f := range b.Fields {
		if !within(f, maxField) {
			return false
		}
	}
	return true
}

func (b block) validButtons() bool {
	actions := map[string]bool{}
	for _, e := range b.Elements {
		if e.Type != "button" || e.Text.Type != "plain_text" || !within(e.Text, maxButton) || len(e.Value) > maxValue ||
			e.ActionID == "" || len(e.ActionID) > maxID || actions[e.ActionID] {
			return false
		}
		actions[e.ActionID] = true
	}
	return len(b.Elements) > 0 && len(b.Elements) <= maxButtons
}

func within(t textObject, max int) bool {
	n := utf8.RuneCountInString(t.Text)
	return (t.Type == "plain_text" || t.Type == "mrkdwn") && n >= 1 && n <= max
}

var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// Plain gives the message roughly as a person sees it, block by block, without
// formatting.
func (m Message) Plain() string {
	var list []block
	if len(m.Blocks) == 0 || json.Unmarshal(m.Blocks, &list) != nil {
		return unescape.Replace(m.Text)
	}
	var parts []string
	for _, b := range list {
		for _, t := range b.texts() {
			s := t.Text
			if t.Type == "mrkdwn" {
				s = strings.NewReplacer("*", "", "`", "").Replace(s)
			}
			parts = append(parts, unescape.Replace(s))
		}
	}
	return strings.Join(parts, "\n")
}
