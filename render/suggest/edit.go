package suggest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/uses"

	"go.yaml.in/yaml/v3"
)

// A change is what should become of the entries of one policy.
type change struct {
	policy catalogue.Policy
	add    []Line
	drop   map[int][]Line // entries that leave, by index, and what takes their place
}

// after returns the patterns of the policy after the change, in order.
func (c change) after() []string {
	var all []string
	for i, p := range c.policy.Patterns {
		instead, leaves := c.drop[i]
		if !leaves {
			all = append(all, p.Glob)
		}
		all = append(all, patternsOf(instead)...)
		if i == c.last() {
			all = append(all, patternsOf(c.add)...)
		}
	}
	return all
}

func patternsOf(lines []Line) (all []string) {
	for _, l := range lines {
		all = append(all, l.Pattern)
	}
	return all
}

// last returns the index of the entry after which new entries stand: the last one of the same group, or the last one.
func (c change) last() int {
	last := len(c.policy.Patterns) - 1
	if len(c.add) == 0 {
		return last
	}
	_, group, _ := strings.Cut(c.add[0].Pattern, ".")
	for i := last; i >= 0; i-- {
		if strings.HasSuffix(c.policy.Patterns[i].Glob, "."+group) {
			return i
		}
	}
	return last
}

var (
	errNotFound = errors.New("its file does not hold it as a document of its own")
	errWritten  = errors.New("spec.activate is written in a way that Headgate does not edit")
	errEmpty    = errors.New("nothing that it activates is used: remove the policy")
	errMade     = errors.New("kustomize builds it: change what it is built from")
)

// edited returns the text of the policy's file after the change. All other bytes stay as they are.
func (c change) edited(text string) (string, error) {
	if len(c.after()) == 0 {
		return "", errEmpty
	}
	items, err := c.items(text)
	if err != nil {
		return "", err
	}
	var made string
	if items.Style&yaml.FlowStyle != 0 {
		made, err = c.inFlow(text, items)
	} else {
		made, err = c.inBlock(text, items)
	}
	if err != nil {
		return "", err
	}
	changed := change{policy: catalogue.Policy{Name: c.policy.Name}}
	for _, pattern := range c.after() {
		changed.policy.Patterns = append(changed.policy.Patterns, catalogue.Pattern{Glob: pattern})
	}
	if _, err := changed.items(made); err != nil { // the edit meant something else
		return "", errWritten
	}
	return made, nil
}

// items returns the list of the policy's patterns in its file.
func (c change) items(text string) (*yaml.Node, error) {
	var found *yaml.Node
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errNotFound
		}
		root := document.Content[0]
		if textOf(root, "kind") != crossplane.KindMRAP.Kind || textOf(child(root, "metadata"), "name") != c.policy.Name {
			continue
		}
		if found != nil {
			return nil, errNotFound
		}
		found = root
	}
	list := child(child(found, "spec"), "activate")
	switch {
	case found == nil:
		return nil, errNotFound
	case list == nil || list.Kind != yaml.SequenceNode || len(list.Content) != len(c.policy.Patterns):
		return nil, errWritten
	}
	for i, item := range list.Content {
		if item.Kind != yaml.ScalarNode || item.Value != c.policy.Patterns[i].Glob || item.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			return nil, errWritten
		}
	}
	return list, nil
}

func child(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

func textOf(node *yaml.Node, key string) string {
	if v := child(node, key); v != nil {
		return v.Value
	}
	return ""
}

// inBlock edits a list with one entry on each line.
func (c change) inBlock(text string, list *yaml.Node) (string, error) {
	lines := strings.SplitAfter(text, "\n")
	after := map[int][]Line{} // by line
	gone := map[int]bool{}
	for i, item := range list.Content {
		at := item.Line - 1
		if i > 0 && at == list.Content[i-1].Line-1 {
			return "", errWritten
		}
		instead, leaves := c.drop[i]
		gone[at] = leaves
		after[at] = instead
		if i == c.last() {
			after[at] = slices.Concat(instead, c.add)
		}
	}
	var b strings.Builder
	for at, line := range lines {
		if !gone[at] {
			b.WriteString(line)
		}
		prefix, isItem := dashOf(line)
		if len(after[at]) > 0 && !isItem {
			return "", errWritten
		}
		end := "\n"
		if strings.HasSuffix(line, "\r\n") {
			end = "\r\n"
		}
		if len(after[at]) > 0 && !gone[at] && !strings.HasSuffix(line, "\n") {
			b.WriteString(end)
		}
		for _, l := range after[at] {
			b.WriteString(prefix + l.Entry() + end)
		}
	}
	return b.String(), nil
}

// dashOf returns the beginning of an item of a list, up to its value.
func dashOf(line string) (prefix string, ok bool) {
	rest := strings.TrimLeft(line, " ")
	value := strings.TrimLeft(strings.TrimPrefix(rest, "-"), " ")
	return line[:len(line)-len(value)], strings.HasPrefix(rest, "- ")
}

// inFlow edits a list in brackets on one line.
func (c change) inFlow(text string, list *yaml.Node) (string, error) {
	lines := strings.SplitAfter(text, "\n")
	line := []rune(lines[list.Line-1])
	begin := list.Column - 1
	if begin >= len(line) || line[begin] != '[' {
		return "", errWritten
	}
	var raw []string
	end := begin + 1
	for _, item := range list.Content {
		if item.Line != list.Line {
			return "", errWritten
		}
		width := len([]rune(item.Value))
		if item.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			width += 2
		}
		end = item.Column - 1 + width
		if end > len(line) {
			return "", errWritten
		}
		raw = append(raw, string(line[item.Column-1:end]))
	}
	for end < len(line) && (line[end] == ' ' || line[end] == ',') {
		end++
	}
	if end >= len(line) || line[end] != ']' {
		return "", errWritten
	}
	var entries []string
	for i := range raw {
		instead, leaves := c.drop[i]
		if !leaves {
			entries = append(entries, raw[i])
		}
		for _, l := range instead {
			entries = append(entries, scalar(l.Pattern))
		}
		if i == c.last() {
			for _, l := range c.add {
				entries = append(entries, scalar(l.Pattern))
			}
		}
	}
	lines[list.Line-1] = string(line[:begin+1]) + strings.Join(entries, ", ") + string(line[end:])
	return strings.Join(lines, ""), nil
}

// An Edit changes a policy in a file, or makes a new file.
type Edit struct {
	Path   string  `json:"path"`
	Policy string  `json:"policy"`
	New    bool    `json:"new,omitempty"` // the file does not exist yet
	Add    []Line  `json:"add,omitempty"`
	Remove []Entry `json:"remove,omitempty"`
	Cannot string  `json:"cannot,omitempty"` // why the user must make the change

	Before string `json:"-"`
	After  string `json:"-"`
}

// An Entry is an entry of a policy that leaves.
type Entry struct {
	Pattern string          `json:"pattern"`
	Origin  manifest.Origin `json:"origin"`
}

// How configures the edits.
type How struct {
	Unused    bool                              // also take out what activates only unused definitions, if every package was read
	Read      func(path string) (string, error) // returns a file of the commit
	New       string                            // the file for what fits in no policy of the commit
	NewCannot string                            // why that file cannot be made; "" if it can
}

// Edits returns the changes of the commit's policies: the missing lines, and with How.Unused without what nothing uses. A commit with
// these changes has no edits.
func (s Suggestion) Edits(how How) []Edit {
	changes := map[string]*change{} // by policy
	for _, p := range s.want.Policies {
		changes[p.Name] = &change{policy: p, drop: map[int][]Line{}}
	}
	var rest []string
	names := map[string][]string{} // missing definitions by policy
	for _, l := range s.Missing {
		for _, name := range l.definitions() {
			if p, found := s.policyFor(name); found {
				names[p.Name] = append(names[p.Name], name)
			} else {
				rest = append(rest, name)
			}
		}
	}
	for name, missing := range names {
		changes[name].add = s.lines(missing)
	}
	if how.Unused && s.Whole {
		s.narrow(changes)
	}
	edits := s.editsOf(changes, how)
	if lines := s.lines(rest); len(lines) > 0 {
		name := s.freeName()
		edits = append(edits, Edit{Path: how.New, Policy: name, New: true, Add: lines, After: Policy(name, lines), Cannot: how.NewCannot})
	}
	return edits
}

// definitions returns the definitions that a line activates.
func (l Line) definitions() []string {
	if len(l.Matches) > 0 {
		return l.Matches
	}
	return []string{l.Pattern}
}

// policyFor returns the policy to add a definition to. Among several unrelated ones, it is the one that an earlier suggestion made.
func (s Suggestion) policyFor(definition string) (catalogue.Policy, bool) {
	if p, found := uses.PolicyFor(s.want, definition); found {
		return p, true
	}
	i := slices.IndexFunc(s.want.Policies, func(p catalogue.Policy) bool { return p.Name == PolicyName && !p.Paused && !s.isPulled(p) })
	if i < 0 {
		return catalogue.Policy{}, false
	}
	return s.want.Policies[i], true
}

func (s Suggestion) isPulled(p catalogue.Policy) bool {
	_, pulled := s.want.Within(p.Origin)
	return pulled
}

// freeName returns a name that no policy of the commit has.
func (s Suggestion) freeName() string {
	name := PolicyName
	for n := 2; slices.ContainsFunc(s.want.Policies, func(p catalogue.Policy) bool { return p.Name == name }); n++ {
		name = fmt.Sprintf("%s-%d", PolicyName, n)
	}
	return name
}

// editsOf returns the edits of policies that change, in order of their names.
func (s Suggestion) editsOf(changes map[string]*change, how How) []Edit {
	var edits []Edit
	texts := map[string]string{} // of files that another edit has changed already
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		c := changes[name]
		if len(c.add)+len(c.drop) == 0 {
			continue
		}
		e := c.edit()
		before, known := texts[e.Path]
		var err error
		switch {
		case s.isMade(c.policy):
			err = errMade
		case !known:
			before, err = how.Read(e.Path)
		}
		if err == nil {
			e.Before = before
			e.After, err = c.edited(before)
		}
		if err != nil {
			e.Cannot = err.Error()
		} else {
			texts[e.Path] = e.After
		}
		edits = append(edits, e)
	}
	return edits
}

// edit returns the edit of a change, without the texts.
func (c change) edit() Edit {
	e := Edit{Path: c.policy.Origin.Path, Policy: c.policy.Name, Add: c.add}
	for _, i := range slices.Sorted(maps.Keys(c.drop)) {
		e.Remove = append(e.Remove, Entry{c.policy.Patterns[i].Glob, c.policy.Patterns[i].Origin})
		e.Add = slices.Concat(e.Add, c.drop[i])
	}
	return e
}

// isMade reports whether a tool built a policy, so that its file does not hold it.
func (s Suggestion) isMade(p catalogue.Policy) bool {
	return slices.ContainsFunc(s.want.Objects, func(o render.Object) bool { return o.ID == crossplane.MRAP(p.Name) && o.IsMade() })
}

// narrow takes out the entries that activate only unused definitions, and replaces the wildcards that also activate unused ones. Entries
// that match nothing stay. It needs a commit of which every package was read: another one may use anything.
func (s Suggestion) narrow(changes map[string]*change) {
	type wide struct {
		*change

		i       int
		matches []string
	}
	var all []wide
	kept := map[string]bool{} // used definitions that remain active
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		c := changes[name]
		for _, l := range c.add {
			keep(kept, l.definitions())
		}
		for i, p := range c.policy.Patterns {
			matches, only := s.matches(p.Glob, s.used())
			if len(matches) == 0 || only || c.policy.Paused || s.isPulled(c.policy) {
				keep(kept, matches)
				continue
			}
			all = append(all, wide{c, i, matches})
		}
	}
	for _, w := range all {
		left := slices.DeleteFunc(w.matches, func(name string) bool { return s.needs[name] == nil || kept[name] })
		w.drop[w.i] = s.lines(left)
		keep(kept, left)
	}
}

func keep(kept map[string]bool, names []string) {
	for _, name := range names {
		kept[name] = true
	}
}

// used returns the definitions that the commit uses.
func (s Suggestion) used() map[string]bool {
	all := make(map[string]bool, len(s.needs))
	for name := range s.needs {
		all[name] = true
	}
	return all
}
