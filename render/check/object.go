package check

import (
	"encoding/json"
	"fmt"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// resultOf checks an object of a known kind, whose version is served.
func resultOf(o render.Object, kind Kind) result {
	found, err := remembered(o, kind)
	if err != nil {
		return result{omits: "their content cannot be read"} // render reports the error
	}
	r := result{omits: found.NotChecked, partly: found.NotChecked != unusable}
	r.add(o, found)
	return r
}

// every returns what the sources find that check every object.
func (all many) every(o render.Object, kind Kind) (r result) {
	for _, s := range all {
		every, ok := s.(Every)
		if !ok {
			continue
		}
		found, err := learned(o, "every 1 "+every.EveryKey(kind), func(content *unstructured.Unstructured) (Result, error) { return every.Every(content, kind), nil })
		if err == nil { // render reports an error
			r.add(o, found)
		}
	}
	return r
}

// add adds the findings of a Kind.
func (r *result) add(o render.Object, found Result) {
	r.place(o, RuleRefused, manifest.Error, "the API server refuses %s: %s", found.Errors)
	r.place(o, RuleDoubt, manifest.Warning, "%s: %s", found.Warnings)
}

// place adds a finding for each problem, at the line of the field.
func (r *result) place(o render.Object, rule string, severity manifest.Severity, format string, problems []Problem) {
	if len(problems) == 0 {
		return
	}
	misread := o.MisreadKeys()
	for _, p := range problems {
		at, about := Place(o, p.Field), p.about(o.ID)
		p.Field = asWritten(o, p.Field, misread)
		r.findings = append(r.findings, manifest.Finding{Rule: rule, Severity: severity, Origin: at, About: about, Message: fmt.Sprintf(format, o.ID, p)})
	}
}

// asWritten returns a field with its keys as the author wrote them: y, which means true.
func asWritten(o render.Object, field string, misread []manifest.MisreadKey) string {
	for _, key := range misread {
		for end := range len(field) + 1 {
			before, ok := strings.CutSuffix(field[:end], "."+key.Means)
			if ok && (end == len(field) || field[end] == '.' || field[end] == '[') && Place(o, field[:end]).Line == key.Line {
				return before + "." + key.Written + field[end:]
			}
		}
	}
	return field
}

// remembered returns the result of a Kind, or the one that a Memo stores.
func remembered(o render.Object, kind Kind) (Result, error) {
	keyed, ok := kind.(Keyed)
	if !ok {
		content, err := o.Content()
		if err != nil {
			return Result{}, err
		}
		return kind.Check(content), nil
	}
	return learned(o, "check 1 "+keyed.Key(), func(content *unstructured.Unstructured) (Result, error) { return kind.Check(content), nil })
}

// learned returns the result of a check of an object's content, or the one that a Memo stores under a key.
func learned(o render.Object, key string, check func(*unstructured.Unstructured) (Result, error)) (r Result, err error) {
	known, err := o.Learn(key, func() (string, error) {
		content, err := o.Content()
		if err != nil {
			return "", err
		}
		made, err := check(content)
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal(made)
		return string(raw), err
	})
	if err != nil {
		return Result{}, err
	}
	return r, json.Unmarshal([]byte(known), &r)
}
