package slacktest

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Slack's limits on forms.
const (
	maxTitle    = 24
	maxMetadata = 3000
	maxInForm   = 100
	maxLabel    = 2000
	maxOptions  = 100
	maxOption   = 75
	maxChoice   = 150
)

type view struct {
	Type     string      `json:"type"`
	Callback string      `json:"callback_id"`
	Metadata string      `json:"private_metadata"`
	Title    *textObject `json:"title"`
	Submit   *textObject `json:"submit"`
	Close    *textObject `json:"close"`
	Blocks   []struct {
		Type    string      `json:"type"`
		ID      string      `json:"block_id"`
		Text    *textObject `json:"text"`
		Label   *textObject `json:"label"`
		Hint    *textObject `json:"hint"`
		Element *struct {
			Type    string   `json:"type"`
			ID      string   `json:"action_id"`
			Max     int      `json:"max_length"`
			Initial string   `json:"initial_value"`
			Options []option `json:"options"`
			First   *option  `json:"initial_option"`
		} `json:"element"`
	} `json:"blocks"`
}

type option struct {
	Text  textObject `json:"text"`
	Value string     `json:"value"`
}

// validView reports whether Slack would take a form.
func validView(b []byte) bool {
	var v view
	if json.Unmarshal(b, &v) != nil || v.Type != "modal" || v.Title == nil || !within(*v.Title, maxTitle) ||
		v.Submit != nil && !within(*v.Submit, maxTitle) || v.Close != nil && !within(*v.Close, maxTitle) ||
		utf8.RuneCountInString(v.Metadata) > maxMetadata || len(v.Blocks) == 0 || len(v.Blocks) > maxInForm {
		return false
	}
	ids, asks := map[string]bool{}, false
	for _, b := range v.Blocks {
		if b.ID != "" && ids[b.ID] {
			return false
		}
		ids[b.ID] = true
		switch b.Type {
		case "section":
			if b.Text == nil || !within(*b.Text, maxSection) {
				return false
			}
		case "input":
			asks = true
			if b.Label == nil || !within(*b.Label, maxLabel) || b.Hint != nil && !within(*b.Hint, maxLabel) || b.Element == nil {
				return false
			}
			e := b.Element
			if e.Max > 3000 || e.Max > 0 && utf8.RuneCountInString(e.Initial) > e.Max {
				return false
			}
			if e.Type == "static_select" && !validOptions(e.Options, e.First) {
				return false
			}
		default:
			return false
		}
	}
	return !asks || v.Submit != nil
}

func validOptions(list []option, first *option) bool {
	if len(list) == 0 || len(list) > maxOptions {
		return false
	}
	found := first == nil
	for _, o := range list {
		if !within(o.Text, maxOption) || o.Value == "" || utf8.RuneCountInString(o.Value) > maxChoice {
			return false
		}
		found = found || o == *first
	}
	return found
}

// Plain gives a form roughly as a person sees it: title, texts, fields.
func (f Form) Plain() string {
	var v view
	if json.Unmarshal(f.View, &v) != nil || v.Title == nil {
		return ""
	}
	parts := []string{v.Title.Text}
	for _, b := range v.Blocks {
		for _, t := range []*textObject{b.Text, b.Label, b.Hint} {
			if t != nil {
				parts = append(parts, unescape.Replace(t.Text))
			}
		}
		if b.Element == nil {
			continue
		}
		if b.Element.Initial != "" {
			parts = append(parts, "= "+b.Element.Initial)
		}
		for _, o := range b.Element.Options {
			parts = append(parts, "- "+unescape.Replace(o.Text.Text))
		}
	}
	return strings.Join(parts, "\n")
}
