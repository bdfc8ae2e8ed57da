package uses

import (
	"encoding/json"
	"strings"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// mostSource is the maximum size of a source of a function that is read.
const mostSource = 4 << 20

// ofSource returns what the source of a function uses.
func ofSource(s catalogue.Program) Uses {
	known, err := s.Learn("uses 1", func(text string) (string, error) {
		raw, err := json.Marshal(namedInSource(s.Language, text))
		return string(raw), err
	})
	var found []InText
	if err == nil {
		err = json.Unmarshal([]byte(known), &found)
	}
	if err != nil {
		return Uses{Unread: []Unread{{Why: err.Error(), position: atLine(s, 0)}}}
	}
	var of Uses
	for _, f := range found {
		at := atLine(s, f.Line)
		if f.Kind == "" {
			of.Unread = append(of.Unread, Unread{Why: f.APIVersion, position: at})
		} else if name, ok := f.name(); ok {
			of.All = append(of.All, Use{Name: name, position: at})
		}
	}
	return of
}

func atLine(s catalogue.Program, line int) position {
	return position{at: manifest.Origin{Path: s.Path, Line: 1 + line}}
}

// namedInSource returns the kinds that a source names. An entry without a kind is the reason why more may be used.
func namedInSource(in catalogue.Language, text string) []InText {
	switch {
	case len(text) > mostSource:
		return []InText{{APIVersion: "it is too large to be read"}}
	case !mentionsKinds(text):
		return nil
	case in == catalogue.Template:
		return withReason(InTemplate(text), "it computes kinds, which are not read")
	}
	found := inProgram(text, languageNamed(in))
	return append(found, InText{APIVersion: "it is a program, which is only searched for names of kinds"})
}

// withReason replaces computed kinds by one reason.
func withReason(all []InText, why string) (named []InText) {
	for _, f := range all {
		switch {
		case !f.Computed():
			named = append(named, f)
		case why != "":
			named = append(named, InText{APIVersion: why, Line: f.Line})
			why = ""
		}
	}
	return named
}

// mentionsKinds reports whether a text may name a kind.
func mentionsKinds(text string) bool {
	return strings.Contains(text, "apiVersion") || strings.Contains(text, "api_version") || modelImport.MatchString(text) || modelFrom.MatchString(text)
}
