package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// minSecret is the length below which a value of the environment cannot be a secret
// and would only blot out parts of other words.
const minSecret = 6

// decoder writes a parsed file into Go values and collects every fault on the way.
// A library's strict decoding stops at the first one; a person who mends a file
// wants them all.
type decoder struct {
	lines   []string
	env     Env
	secrets secrecy
	faults  *Faults
	notes   []Note
	at      map[string]ast.Node // where each key and entry stands, by path
	files   []string            // what was read of secrets, by the names of their files
	filled  []string            // values that came from the environment; no message shows them
}

var (
	textType = reflect.TypeFor[encoding.TextUnmarshaler]()
	nodeType = reflect.TypeFor[ast.Node]()
	// secretType is what every type of secret can do. It is refused as literal text,
	// whichever member holds it.
	secretType = reflect.TypeFor[interface{ Reveal() string }]()
)

// unread stands for a secret that was not read.
const unread = "not read"

// fault tells a fault at a node; without one, at the place of its path or of what
// encloses it.
func (d *decoder) fault(n ast.Node, path, format string, args ...any) {
	if n == nil {
		n = d.nearest(path)
	}
	f := Fault{Path: path, Problem: d.clean(fmt.Sprintf(format, args...))}
	if line, column := place(n); line > 0 {
		f.Line, f.Column = line, column
		if line <= len(d.lines) {
			f.Excerpt = excerpt(d.lines, line-1)
		}
	}
	d.faults.List = append(d.faults.List, f)
}

// clean takes out of a message what it must not show: a value of the environment may
// be a secret whatever it looks like.
func (d *decoder) clean(problem string) string {
	for _, v := range d.filled {
		problem = strings.ReplaceAll(problem, v, "[redacted]")
	}
	return mask(restore(problem))
}

// nearest gives what was written at a path, or at the closest one around it.
func (d *decoder) nearest(path string) ast.Node {
	for path != "" {
		if n, ok := d.at[path]; ok {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return nil
}

func (d *decoder) note(path, text string) {
	line, _ := place(d.nearest(path))
	d.notes = append(d.notes, Note{Line: line, Path: path, Text: text})
}

func place(n ast.Node) (line, column int) {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0, 0
	}
	p := n.GetToken().Position
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		return place(m.Values[0].Key) // a block mapping's token is its first colon
	}
	return p.Line, p.Column
}

// into decodes a node into v, which is addressable and holds the defaults. A null
// leaves them.
func (d *decoder) into(n ast.Node, v reflect.Value, path string) {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		d.fault(n, path, "anchors, aliases, merges and tags are not used in this file; write the value out")
		return
	}
	switch {
	case v.Type() == nodeType:
		v.Set(reflect.ValueOf(n))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.into(n, v.Elem(), path)
	case v.Addr().Type().Implements(textType):
		d.text(n, v, path)
	case v.Kind() == reflect.Struct:
		d.structure(n, v, path)
	case v.Kind() == reflect.Map:
		d.mapping(n, v, path)
	case v.Kind() == reflect.Slice:
		d.sequence(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

// pairs gives the keys and values of a mapping, or false after telling the fault.
func (d *decoder) pairs(n ast.Node, path string) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	d.fault(n, path, "holds %s where a mapping (key: value) belongs", shape(n))
	return nil, false
}

func (d *decoder) structure(n ast.Node, v reflect.Value, path string) {
	pairs, ok := d.pairs(n, path)
	if !ok {
		return
	}
	known := fields(v.Type())
	for _, p := range pairs {
		key, ok := d.key(p, path)
		if !ok {
			continue
		}
		index, ok := known[key]
		if !ok {
			d.fault(p.Key, join(path, key), "is not a key here; known are %s", strings.Join(names(known), ", "))
			continue
		}
		d.at[join(path, key)] = p.Key
		d.into(p.Value, v.FieldByIndex(index), join(path, key))
	}
}

func (d *decoder) mapping(n ast.Node, v reflect.Value, path string) {
	pairs, ok := d.pairs(n, path)
	if !ok {
		return
	}
	m := reflect.MakeMapWithSize(v.Type(), len(pairs))
	for _, p := range pairs {
		key, ok := d.key(p, path)
		if !ok {
			continue
		}
		value := reflect.New(v.Type().Elem()).Elem()
		d.at[join(path, key)] = p.Key
		d.into(p.Value, value, join(path, key))
		m.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), value)
	}
	v.Set(m)
}

func (d *decoder) key(p *ast.MappingValueNode, path string) (string, bool) {
	s, ok := p.Key.(*ast.StringNode)
	if !ok {
		d.fault(p.Key, path, "a key must be plain text")
		return "", false
	}
	if hidden.MatchString(s.Value) {
		d.fault(p.Key, path, "a key cannot come from the environment")
		return "", false
	}
	return s.Value, true
}

func (d *decoder) sequence(n ast.Node, v reflect.Value, path string) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fault(n, path, "holds %s where a list belongs", shape(n))
		return
	}
	list := reflect.MakeSlice(v.Type(), len(s.Values), len(s.Values))
	for i, one := range s.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		if _, null := one.(*ast.NullNode); null {
			d.fault(one, at, "an empty entry says nothing; remove it")
			continue
		}
		d.at[at] = one
		d.into(one, list.Index(i), at)
	}
	v.Set(list)
}

// text decodes a scalar into a type that reads itself from text. Numbers are handed
// over as they are written, so that the type can say what it wants instead.
func (d *decoder) text(n ast.Node, v reflect.Value, path string) {
	if _, isString := n.(*ast.StringNode); v.Type().Implements(secretType) && !(isString && hidden.MatchString(n.GetToken().Value)) {
		d.fault(n, path, "a secret does not stand in this file; write ${NAME} to take it from the environment, or use the *_file key")
		return
	}
	s, ok := unread, true
	if d.secrets == readSecrets || !v.Type().Implements(secretType) {
		s, ok = d.plain(n, path)
	}
	if !ok {
		return
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
		d.fault(n, path, "%v", err)
	}
}

// plain gives a scalar as text with the environment's values filled in.
func (d *decoder) plain(n ast.Node, path string) (string, bool) {
	var s string
	switch n := n.(type) {
	case *ast.StringNode:
		s = n.Value
	case *ast.LiteralNode:
		s = n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	default:
		d.fault(n, path, "holds %s where text belongs", shape(n))
		return "", false
	}
	if strings.ContainsRune(s, 0) {
		d.fault(n, path, "holds a NUL character; remove it")
		return "", false
	}
	filled, missing := resolve(s, d.env)
	if filled != s && len(filled) >= minSecret {
		d.filled = append(d.filled, filled)
	}
	if len(missing) > 0 && !lenient(path) {
		d.fault(n, path, "environment variable %s is not set or empty; set it, or use the key's *_file form", strings.Join(missing, ", "))
		return "", false
	}
	return filled, true
}

// lenient names the values whose variable may be missing: a database can also be
// named by --database-url, and each command that needs one says so itself.
func lenient(path string) bool {
	return path == "database.url" || path == "database.direct_url"
}

func (d *decoder) scalar(n ast.Node, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		switch n.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
			d.fault(n, path, "must be text; put it in quotes")
			return
		}
		if s, ok := d.plain(n, path); ok {
			v.SetString(s)
		}
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			d.fault(n, path, "must be true or false")
			return
		}
		v.SetBool(b.Value)
	case reflect.Int, reflect.Int64:
		i, err := integer(n)
		if err != nil {
			d.fault(n, path, "must be a whole number")
			return
		}
		v.SetInt(i)
	default:
		panic("config: no decoding for " + v.Type().String()) // a bug: a settings type of ours holds it
	}
}

func integer(n ast.Node) (int64, error) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(i.GetToken().Value, 10, 64)
}

// fields maps the keys of a struct to its fields: the yaml tag, else the json tag.
func fields(t reflect.Type) map[string][]int {
	known := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if !f.IsExported() || f.Anonymous {
			continue
		}
		tag, ok := f.Tag.Lookup("yaml")
		if !ok {
			tag = f.Tag.Get("json")
		}
		name, _, _ := strings.Cut(tag, ",")
		if name != "" && name != "-" {
			known[name] = f.Index
		}
	}
	if t == policyType {
		for _, name := range derivedPolicyKeys {
			delete(known, name)
		}
	}
	return known
}

func names(known map[string][]int) []string {
	list := make([]string, 0, len(known))
	for name := range known {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// shape names what a node is, for people.
func shape(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode, *ast.FloatNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	}
	return "something else"
}
