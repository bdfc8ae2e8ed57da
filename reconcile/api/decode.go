// Package api reads Syncs of every version of the API from files.
package api

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/health"

	"go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"
)

// A LineError is a mistake on a line of a file of Syncs.
type LineError struct {
	Line int // counted from 1
	Err  error
}

func (p LineError) Error() string { return fmt.Sprintf("line %d: %s", p.Line, p.Err) }

// Unwrap lets errors.Is and errors.As find Err.
func (p LineError) Unwrap() error { return p.Err }

// Decode reads the Syncs of a file, which is YAML or JSON and holds one or several documents. The returned Syncs are
// valid and have all defaults filled in. The error joins one LineError for every mistake.
func Decode(data []byte) ([]v1alpha1.Sync, error) {
	syncs, _, err := DecodeWarned(data)
	return syncs, err
}

// DecodeWarned does what Decode does, and returns a LineError for each field that goes, which is no mistake yet.
func DecodeWarned(data []byte) (syncs []v1alpha1.Sync, warnings []error, err error) {
	var (
		problems []error
		first    = map[string]int{}
		read     = 0 // number of bytes already parsed
	)
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		raw, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		d := part{raw: raw, line: 1 + bytes.Count(data[:read], []byte("\n"))}
		if err != nil {
			return nil, nil, LineError{d.line, err}
		}
		if at := bytes.Index(data[read:], raw); at >= 0 {
			d.line += bytes.Count(data[read:read+at], []byte("\n"))
			read += at + len(raw)
		}
		s, empty, wrong := d.decode()
		if empty {
			continue
		}
		id := s.Namespace + "/" + s.Name
		if wrong == nil && first[id] > 0 {
			wrong = []error{d.problem(fmt.Errorf("metadata.name: %s is the sync of line %d already", id, first[id]))}
		}
		if wrong != nil {
			problems = append(problems, wrong...)
			continue
		}
		first[id] = d.begin()
		warnings = append(warnings, d.warnings()...)
		syncs = append(syncs, s)
	}
	switch {
	case len(problems) > 0:
		return nil, nil, errors.Join(problems...)
	case len(syncs) == 0:
		return nil, nil, errors.New("there is no Sync in it")
	}
	return syncs, warnings, nil
}

// A part is one document of a file.
type part struct {
	raw  []byte
	line int // line of the file where the document begins
}

// decode decodes the document, and reports whether it is empty.
func (d part) decode() (s v1alpha1.Sync, empty bool, wrong []error) {
	if wrong := d.keys(); wrong != nil {
		return s, false, wrong
	}
	asJSON, err := sigsyaml.YAMLToJSONStrict(d.raw)
	if err != nil {
		return s, false, d.malformed(err)
	}
	if string(asJSON) == "null" {
		return s, true, nil
	}
	var content any
	if err := json.Unmarshal(asJSON, &content); err != nil {
		return s, false, []error{d.problem(err)}
	}
	if err := isSync(content); err != nil {
		return s, false, []error{d.problem(err)}
	}
	for _, f := range shape(content) {
		wrong = append(wrong, LineError{d.lineOf(f.path...), fmt.Errorf("%s: %s", field(f.path), f.text)})
	}
	if wrong != nil {
		return s, false, wrong
	}
	unknown, err := strict.UnmarshalStrict(asJSON, &s)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return s, false, []error{d.problem(err)}
	}
	s.Default()
	_, expressions := health.Compile(s.Spec.HealthCheckExprs)
	return s, false, slices.Concat(d.problems(s.ValidateFile()), d.problems(expressions))
}

// warnings returns a LineError for each field of a valid document that goes.
func (d part) warnings() []error {
	var content any
	if err := sigsyaml.Unmarshal(d.raw, &content); err != nil {
		return nil // decode returned the error
	}
	var all []error
	for _, text := range v1alpha1.Warnings(content, v1alpha1.Removals) {
		all = append(all, errors.New(text))
	}
	return d.problems(errors.Join(all...))
}

// oldBool matches the unquoted words that YAML 1.1, and so sigs.k8s.io/yaml, reads as booleans.
var oldBool = regexp.MustCompile(`^(?i:y|yes|on|n|no|off)$`)

// keys returns an error for each key that is not a string. The conversion to JSON makes it one, which may replace the
// value of another key.
func (d part) keys() (wrong []error) {
	var root yaml.Node
	if yaml.Unmarshal(d.raw, &root) != nil {
		return nil // decode returns the error
	}
	var look func(n *yaml.Node)
	look = func(n *yaml.Node) {
		for i, below := range n.Content {
			isText := below.Tag == "!!merge" || below.Tag == "!!str" && (below.Style != 0 || !oldBool.MatchString(below.Value))
			if n.Kind == yaml.MappingNode && i%2 == 0 && !isText {
				wrong = append(wrong, LineError{d.line + below.Line - 1, fmt.Errorf("the key %s is not text; quote it", below.Value)})
			}
			look(below)
		}
	}
	look(&root)
	return wrong
}

// isSync returns an error if a document is not a Sync.
func isSync(document any) error {
	m, ok := document.(map[string]any)
	if !ok {
		return errors.New("it is not a mapping; a Sync begins with apiVersion, kind and metadata")
	}
	apiVersion, _ := m["apiVersion"].(string)
	kind, _ := m["kind"].(string)
	if want := v1alpha1.GroupVersion.String(); apiVersion != want || kind != v1alpha1.Kind {
		return fmt.Errorf("it is %s %s; a Sync is apiVersion: %s, kind: %s",
			cmp.Or(apiVersion, "no apiVersion,"), cmp.Or(kind, "no kind"), want, v1alpha1.Kind)
	}
	return nil
}

// problems returns a LineError for each error in a join. The errors must begin with the path of a field.
func (d part) problems(err error) []error {
	if err == nil {
		return nil
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	placed := make([]error, len(all))
	for i, e := range all {
		path, _, _ := strings.Cut(e.Error(), ": ")
		placed[i] = LineError{d.lineOf(stepsOf(path)...), e}
	}
	return placed
}

func (d part) problem(err error) error { return LineError{d.begin(), err} }

var lineInError = regexp.MustCompile(`^(?:yaml: )?\s*line (\d+): (.*)$`)

// malformed returns the errors of a YAML library about a document, each with its line in the file.
func (d part) malformed(err error) []error {
	var all []error
	for text := range strings.SplitSeq(err.Error(), "\n") {
		line := d.begin()
		if m := lineInError.FindStringSubmatch(text); m != nil {
			n, _ := strconv.Atoi(m[1]) // the regular expression only matches digits
			line, text = d.line+n-1, m[2]
		} else if strings.HasSuffix(text, "unmarshal errors:") {
			continue // the next lines have the errors
		}
		all = append(all, LineError{line, errors.New(strings.TrimPrefix(text, "yaml: "))})
	}
	return all
}

// begin returns the line at which the content of the document begins.
func (d part) begin() int { return d.lineOf() }

// lineOf returns the line of a field, or of its innermost parent that exists.
func (d part) lineOf(path ...any) int {
	var root yaml.Node
	if err := yaml.Unmarshal(d.raw, &root); err != nil || len(root.Content) == 0 {
		return d.line
	}
	node := root.Content[0]
	line := node.Line
	for _, step := range path {
		var next *yaml.Node
		switch step := step.(type) {
		case string:
			for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
				if node.Content[i].Value == step {
					line, next = node.Content[i].Line, node.Content[i+1]
				}
			}
		case int:
			if node.Kind == yaml.SequenceNode && step < len(node.Content) {
				next = node.Content[step]
				line = next.Line
			}
		}
		if next == nil {
			break
		}
		node = next
	}
	return d.line + line - 1
}

var step = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// stepsOf splits a written path such as spec.packages[0].name into its steps.
func stepsOf(path string) []any {
	var steps []any
	for _, text := range step.FindAllString(path, -1) {
		if inner, ok := strings.CutPrefix(text, "["); ok {
			inner = strings.TrimSuffix(inner, "]")
			if n, err := strconv.Atoi(inner); err == nil {
				steps = append(steps, n)
			} else {
				steps = append(steps, inner)
			}
			continue
		}
		steps = append(steps, text)
	}
	return steps
}
