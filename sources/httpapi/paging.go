package httpapi

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"time"
)

// Styles of paging.
const (
	styleNone   = "none"
	stylePage   = "page"
	styleOffset = "offset"
	styleCursor = "cursor"
	styleURL    = "url"
	styleLink   = "link"
)

// paging is how lists go on.
type paging struct {
	style     string
	param     string
	first     int64
	sizeParam string
	size      int
	next      Path
	mayMiss   bool
	last      Path
	more      Path
	total     Path
	reach     int
}

// position is where a page begins. Its zero value is the beginning of a list.
type position struct {
	Token  string    `json:"token,omitempty"` // cursor, or the address of the page
	Turned int64     `json:"turned"`          // pages that were read since the list began, or began anew
	Count  int64     `json:"count"`           // objects on them
	Size   int       `json:"size,omitempty"`  // of the pages; it stays while a list is read
	Total  int64     `json:"total,omitempty"`
	Under  time.Time `json:"under,omitzero"` // the list was begun anew under this time
	Oldest time.Time `json:"oldest"`         // when the last object was created
	To     time.Time `json:"to"`             // back to where the list was read without a gap
	Till   time.Time `json:"till"`           // what is asked for was created before
}

// ask puts a position into a request.
func (p *paging) ask(query url.Values, at position) {
	if p.sizeParam != "" {
		query.Set(p.sizeParam, strconv.Itoa(at.Size))
	}
	switch p.style {
	case stylePage:
		query.Set(p.param, strconv.FormatInt(p.first+at.Turned, 10))
	case styleOffset:
		query.Set(p.param, strconv.FormatInt(at.Count, 10))
	case styleCursor:
		if at.Token != "" {
			query.Set(p.param, at.Token)
		}
	}
}

// turn gives the position after a page, and whether the list has ended. Where a reply
// does not say what it is configured to say, nobody knows: that is an error.
func (p *paging) turn(at position, r *reply, items []any, asked string) (next position, ended bool, err error) {
	next = at
	next.Turned, next.Count, next.Token = at.Turned+1, at.Count+int64(len(items)), ""
	told, err := p.told(r.value)
	if err != nil {
		return at, false, err
	}
	if told.counted && at.Turned > 0 && told.total < at.Total && (p.style == stylePage || p.style == styleOffset) {
		return at, false, errors.New("the list became shorter while it was read, and may have slipped past an object")
	}
	next.Total = told.total
	switch p.style {
	case stylePage, styleOffset:
		ended, err = told.numbered(next, len(items))
	default:
		next.Token, err = p.token(r, items, asked)
		ended = next.Token == "" || told.said && !told.more
		if err == nil && !ended && next.Token == at.Token {
			err = errors.New("the list does not move on")
		}
	}
	if err == nil && ended && told.counted && next.Count < told.total {
		err = errors.New("the list ended before the number of objects that it told")
	}
	if err == nil && ended && told.more {
		err = errors.New("the list says that there is more, and not where")
	}
	return next, ended, err
}

// told is what a reply says of its list.
type told struct {
	said, more bool  // whether there is more
	counted    bool  // total is told
	total      int64 // objects in all
}

// numbered says whether a list by pages or offsets has ended.
func (t told) numbered(next position, items int) (bool, error) {
	switch {
	case t.more && items == 0:
		return false, errors.New("the list promises more after an empty page")
	case t.said:
		return !t.more, nil
	case t.counted:
		return next.Count >= next.Total || items == 0, nil
	}
	return items == 0, nil // a short page may be the provider's own limit
}

func (p *paging) told(v any) (t told, err error) {
	if p.more != nil {
		value, _, err := p.more.find(v)
		if t.more, t.said = value.(bool); err != nil || !t.said {
			return told{}, errors.New("the reply does not say whether there is more")
		}
	}
	if p.total != nil {
		value, _, err := p.total.find(v)
		number, ok := value.(json.Number)
		if err == nil && ok {
			t.total, err = strconv.ParseInt(number.String(), 10, 64)
		}
		if t.counted = true; err != nil || !ok || t.total < 0 {
			return told{}, errors.New("the reply does not say how many objects there are")
		}
	}
	return t, nil
}

// token gives the next cursor or address, empty at the end.
func (p *paging) token(r *reply, items []any, asked string) (string, error) {
	switch {
	case p.style == styleLink:
		return nextLink(r.header, asked)
	case p.last != nil:
		if len(items) == 0 {
			return "", nil
		}
		token, err := p.last.text(items[len(items)-1])
		if err == nil && token == "" {
			err = errors.New("the last object has no cursor")
		}
		return token, err
	}
	value, there, err := p.next.find(r.value)
	if err != nil || !there && !p.mayMiss {
		return "", errors.New("the reply does not say where the list goes on")
	}
	token, err := textOf(value)
	if err != nil || token == "" || p.style == styleCursor {
		return token, err
	}
	return sameHost(token, asked)
}

// sameHost makes a whole address of the next page's. One of another host is refused: our
// credentials would go there.
func sameHost(next, asked string) (string, error) {
	base, err := url.Parse(asked)
	if err != nil {
		return "", errors.New("the next page's address cannot be read")
	}
	u, err := base.Parse(next)
	if err != nil || u.Scheme != base.Scheme || u.Host != base.Host || u.User != nil {
		return "", errors.New("the next page's address leads to another host; it is not followed")
	}
	u.Fragment = ""
	return u.String(), nil
}
