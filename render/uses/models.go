package uses

import (
	"regexp"
	"slices"
	"strings"
)

// Generated models name a group by its labels in reverse order: models.io.upbound.awsm.s3.v1beta1 in KCL, where "m" is joined to the
// label before it, and model.io.upbound.m.aws.s3.bucket with import v1beta1 in Python, in lower case.
var (
	modelImport = regexp.MustCompile(`(?m)^[ \t]*import[ \t]+models\.([\w.]+)\.(v\d\w*)(?:[ \t]+as[ \t]+(\w+))?`)
	modelFrom   = regexp.MustCompile(`(?m)^[ \t]*from[ \t]+\.*(?:\w+\.)*?models?\.([\w.]+)\.(\w+)[ \t]+import[ \t(\\]*\s*(v\d\w*)`)
	modelType   = regexp.MustCompile(`(\w+)\.([A-Z]\w*)[ \t]*\{`)
)

// inModels finds the kinds of generated models that a program uses.
func inModels(text string) []InText {
	var all []InText
	imported := map[string]InText{} // by alias
	for _, m := range modelImport.FindAllStringSubmatch(text, -1) {
		alias := m[3]
		if alias == "" {
			alias = m[2]
		}
		imported[alias] = InText{APIVersion: m[1] + "/" + m[2]}
	}
	lines := lineCounter{text: text}
	if len(imported) > 0 {
		for _, m := range modelType.FindAllStringSubmatchIndex(text, -1) {
			of, ok := imported[text[m[2]:m[3]]]
			if !ok {
				continue
			}
			path, version, _ := strings.Cut(of.APIVersion, "/")
			groups := groupsOf(path)
			for _, group := range groups {
				all = append(all, InText{APIVersion: group + "/" + version, Kind: text[m[4]:m[5]], Line: lines.at(m[0]), Guess: len(groups) > 1})
			}
		}
	}
	lines = lineCounter{text: text}
	for _, m := range modelFrom.FindAllStringSubmatchIndex(text, -1) {
		group := reversed(strings.Split(text[m[2]:m[3]], "."))
		all = append(all, InText{APIVersion: group + "/" + text[m[6]:m[7]], Kind: text[m[4]:m[5]], Line: lines.at(m[4]), Folded: true})
	}
	return all
}

// groupsOf returns the groups that a path of KCL may mean. The third label may end with the "m" of a group of namespaced managed
// resources.
func groupsOf(path string) []string {
	labels := strings.Split(path, ".")
	groups := []string{reversed(labels)}
	if len(labels) > 2 {
		if label, joined := strings.CutSuffix(labels[2], "m"); joined && label != "" {
			groups = append(groups, reversed(slices.Concat(labels[:2], []string{"m", label}, labels[3:])))
		}
	}
	return groups
}

func reversed(labels []string) string {
	labels = slices.Clone(labels)
	slices.Reverse(labels)
	return strings.Join(labels, ".")
}

// A lineCounter returns the lines of growing offsets of a text, from 0.
type lineCounter struct {
	text         string
	offset, line int
}

func (l *lineCounter) at(offset int) int {
	l.line += strings.Count(l.text[l.offset:offset], "\n")
	l.offset = offset
	return l.line
}
