package catalogue

import (
	"fmt"
)

// readPolicies reads the decoded policies.
func (s *sorting) readPolicies() {
	for _, u := range s.toDecode {
		if u.object == nil || u.fate != policy {
			continue
		}
		if p, ok := s.policyOf(u); ok {
			s.policies = append(s.policies, p)
		}
	}
}

// policyOf reads a ManagedResourceActivationPolicy.
func (s *sorting) policyOf(u *undecoded) (Policy, bool) {
	spec, _ := u.object.Object["spec"].(map[string]any)
	entries, ok := spec["activate"].([]any)
	if !ok || len(entries) == 0 {
		at := placeOf(u.Document, "spec", "activate")
		s.refuse(at, fmt.Errorf("spec.activate of policy %s must be a list of at least one pattern", u.Header.Name))
		return Policy{}, false
	}
	globs := make([]string, len(entries))
	for i, entry := range entries {
		if globs[i], ok = entry.(string); !ok {
			s.refuse(u.OriginOf("spec", "activate", i), fmt.Errorf("spec.activate[%d] of policy %s must be a string", i, u.Header.Name))
			return Policy{}, false
		}
	}

	p := Policy{
		Name:     u.Header.Name,
		Paused:   u.Header.Paused,
		Patterns: make([]Pattern, len(globs)),
		Origin:   u.Origin,
	}
	for i, origin := range u.OriginsOf(len(globs), "spec", "activate") {
		p.Patterns[i] = Pattern{Glob: globs[i], Origin: origin}
	}
	return p, true
}
