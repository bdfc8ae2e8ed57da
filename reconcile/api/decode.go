// Package api reads Syncs of every version of the API from files.
package api

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Decode reads the Syncs of a file: YAML or JSON, one or several documents. They have every default
// filled in, and are valid. Its error lists everything that is wrong, each with the path of its field.
func Decode(data []byte) ([]v1alpha1.Sync, error) {
	var (
		syncs    []v1alpha1.Sync
		problems []error
		first    = map[string]int{}
	)
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		s, empty, err := decodeOne(document)
		if empty {
			continue
		}
		id := s.Namespace + "/" + s.Name
		if err == nil && first[id] > 0 {
			err = fmt.Errorf("metadata.name: %s is the sync of document %d already", id, first[id])
		}
		if err != nil {
			problems = append(problems, inDocument(n, err)...)
			continue
		}
		first[id] = n
		syncs = append(syncs, s)
	}
	switch {
	case len(problems) > 0:
		return nil, errors.Join(problems...)
	case len(syncs) == 0:
		return nil, errors.New("there is no Sync in it")
	}
	return syncs, nil
}

// decodeOne decodes one document, and reports whether it is empty.
func decodeOne(document []byte) (s v1alpha1.Sync, empty bool, err error) {
	asJSON, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return s, false, err
	}
	if string(asJSON) == "null" {
		return s, true, nil
	}
	unknown, err := strict.UnmarshalStrict(asJSON, &s)
	if err != nil {
		return s, false, err
	}
	want := v1alpha1.GroupVersion.String()
	if s.APIVersion != want || s.Kind != v1alpha1.Kind {
		return s, false, fmt.Errorf("it is %s %s; a Sync is apiVersion: %s, kind: %s",
			cmp.Or(s.APIVersion, "no apiVersion,"), cmp.Or(s.Kind, "no kind"), want, v1alpha1.Kind)
	}
	if len(unknown) > 0 {
		return s, false, errors.Join(unknown...)
	}
	s.Default()
	return s, false, s.Validate()
}

// inDocument adds the number of a document to every error of it.
func inDocument(document int, err error) []error {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for i, e := range all {
		all[i] = fmt.Errorf("document %d: %w", document, e)
	}
	return all
}
