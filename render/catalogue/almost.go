package catalogue

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// refuseAlmost refuses documents that are not manifests but were probably meant to be. Ignoring such a document would prune the
// objects that it declared before.
func (s *sorting) refuseAlmost() {
	flaws := make([]string, len(s.doubtful))
	manifest.Each(len(s.doubtful), func(i int) { flaws[i] = flawOf(s.doubtful[i]) })
	for i, flaw := range flaws {
		if flaw == "" {
			continue
		}
		d := s.doubtful[i]
		key, text, _ := strings.Cut(flaw, "\n")
		at := d.Origin
		if key != "" {
			at = d.OriginOf(key)
		}
		s.refuse(at, fmt.Errorf("%s, or list the file in %s if it is no Kubernetes manifest", text, ignoreFile))
	}
}

// flawOf returns why a document is not a manifest: the key with the mistake, a line break, and the reason. It returns "" if the
// document was not meant to be a manifest.
func flawOf(d *manifest.Document) string {
	if isProgramFile(d.Origin.Path) {
		return ""
	}
	flaw, err := d.Learn("almost a manifest, or several", func() (string, error) {
		v, err := d.Value()
		if all, ok := v.([]any); ok && areManifests(all) {
			return "\nthis document is a list of manifests; make each a document, or make it a List", nil
		}
		m, ok := v.(map[string]any)
		if err != nil || !ok {
			return "", nil //nolint:nilerr // what cannot be decoded and is here does not look like a manifest
		}
		key, text := almost(m)
		if text == "" {
			return "", nil
		}
		return key + "\n" + text, nil
	})
	if err != nil {
		return ""
	}
	return flaw
}

// The keys of every manifest, and the form of their values.
var (
	manifestKeys = []string{"apiVersion", "kind", "metadata"}
	apiVersions  = regexp.MustCompile(`^([a-z0-9.-]+/)?v[0-9]+((alpha|beta)[0-9]+)?$`)
	kinds        = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
)

// almost returns why a document that is not a manifest was probably meant to be one, and the key with the mistake, or "". It needs
// two of the keys apiVersion, kind and metadata, or one of them and a misspelt one. A value that is impossible in a manifest, such
// as the kind compute#instance, belongs to another format.
func almost(m map[string]any) (key, text string) {
	if apiVersion, ok := m["apiVersion"].(string); ok {
		kind, _ := m["kind"].(string)
		if h := (manifest.Header{APIVersion: apiVersion, Kind: kind}); isProgram(h.ID().Group, h.Version(), kind) {
			return "", ""
		}
	}
	if isList(m) {
		return "items", "this document has manifests as its items, but not both apiVersion and kind of a List; add them"
	}
	var has, lacks []string
	misspelt := map[string]string{} // the written key, by the intended key
	for _, key := range manifestKeys {
		v, ok := m[key]
		switch {
		case ok && fits(key, v):
			has = append(has, key)
		case ok && !isEmpty(v) && hasAll(m):
			return key, fmt.Sprintf("%s does not have the form that a manifest needs; correct it", key)
		case ok && !isEmpty(v):
			return "", ""
		default:
			lacks = append(lacks, key)
			if ok {
				misspelt[key] = key // it is empty
			} else if near := nearest(m, key); near != "" {
				misspelt[key] = near
			}
		}
	}
	if len(has)+len(misspelt) < 2 {
		return "", ""
	}
	for _, key := range lacks {
		switch written := misspelt[key]; written {
		case "":
		case key:
			return key, key + " is empty; set it"
		default:
			return written, fmt.Sprintf("the key %s is misspelt; write %s", written, key)
		}
	}
	return "", fmt.Sprintf("this document has %s and %s, but no %s; add it", has[0], has[1], lacks[0])
}

// fits reports whether a value is valid for a key of a manifest.
func fits(key string, v any) bool {
	switch text, isText := v.(string); key {
	case "apiVersion":
		return isText && apiVersions.MatchString(text)
	case "kind":
		return isText && kinds.MatchString(text)
	default:
		_, ok := v.(map[string]any)
		return ok
	}
}

func hasAll(m map[string]any) bool {
	return !slices.ContainsFunc(manifestKeys, func(key string) bool { _, ok := m[key]; return !ok })
}

// isList reports whether the items of a document are manifests.
func isList(m map[string]any) bool {
	items, _ := m["items"].([]any)
	return areManifests(items)
}

// areManifests reports whether the items of a list are manifests, judging by the first item.
func areManifests(items []any) bool {
	if len(items) == 0 {
		return false
	}
	first, _ := items[0].(map[string]any)
	return !slices.ContainsFunc(manifestKeys, func(key string) bool { return !fits(key, first[key]) })
}

func isEmpty(v any) bool { return v == nil || v == "" }

// notMisspelt lists keys of other formats that resemble keys of a manifest.
var notMisspelt = map[string]bool{"appversion": true}

// nearest returns a key of a document that differs from a manifest key only in case or by one letter.
func nearest(m map[string]any, key string) string {
	for _, other := range slices.Sorted(maps.Keys(m)) {
		plain := strings.ToLower(strings.TrimSpace(other))
		if !slices.Contains(manifestKeys, other) && !notMisspelt[plain] && isNear(plain, strings.ToLower(key)) && fits(key, m[other]) {
			return other
		}
	}
	return ""
}

// isNear reports whether two words are equal, or differ by one letter: missing, added, wrong, or exchanged with the next.
func isNear(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	a, b = a[i:], b[i:]
	switch {
	case a == b, len(b) == 1:
		return true
	case len(a) < len(b):
		return a == b[1:]
	}
	return a[1:] == b[1:] || len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]
}
