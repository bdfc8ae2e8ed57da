package catalogue

import (
	"fmt"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Others is how to treat objects that configure Flux or Argo CD, and documents that are encrypted with SOPS. Their
// tools read the same repository.
type Others string

// The choices; "" is SkipOthers.
const (
	SkipOthers   Others = "Skip"
	RefuseOthers Others = "Refuse"
	ApplyOthers  Others = "Apply"
)

// Check reports whether it is one of the choices.
func (o Others) Check() error {
	switch o {
	case "", SkipOthers, RefuseOthers, ApplyOthers:
		return nil
	}
	return fmt.Errorf("others must be %s, %s or %s, not %q", SkipOthers, RefuseOthers, ApplyOthers, string(o))
}

// other skips or refuses a document that is for another tool.
func (s *sorting) other(d *manifest.Document, why Why) {
	what := d.Header.Kind + " " + d.Header.Name
	if isCipher(d.Header.Kind) {
		what = "this document"
	}
	const leave = "is not to be here: take it out of the path, or list its file in " + ignoreFile
	switch {
	case s.how.Others == ApplyOthers:
		s.refuse(d.Origin, fmt.Errorf("%s is encrypted with SOPS as a whole, so its kind and name are not known: encrypt only its data", what))
	case s.how.Others != RefuseOthers:
		s.skipped[why]++
		s.omit(why, d.Origin, d.Header)
	case why == Encrypted:
		s.refuse(d.Origin, fmt.Errorf("%s is encrypted with SOPS and %s", what, leave))
	default:
		s.refuse(d.Origin, fmt.Errorf("%s is an object of Flux or Argo CD and %s", what, leave))
	}
}

// isCipher reports whether a value is encrypted with SOPS.
func isCipher(value string) bool { return strings.HasPrefix(value, "ENC[") }

// isEncrypted reports whether an object bears the metadata of SOPS.
func isEncrypted(u *unstructured.Unstructured) bool {
	_, ok := u.Object["sops"].(map[string]any)
	return ok
}
