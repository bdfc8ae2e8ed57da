package catalogue

import (
	"fmt"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Others decides how to treat objects that configure Flux or Argo CD, and documents encrypted with SOPS. Their tools read the same
// repository.
type Others string

// The choices; "" means SkipOthers.
const (
	SkipOthers   Others = "Skip"
	RefuseOthers Others = "Refuse"
	ApplyOthers  Others = "Apply"
)

// Check returns an error if o is not one of the choices.
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
	const leave = "must not be here: remove it from the path, or list its file in " + ignoreFile
	switch {
	case s.how.Others == ApplyOthers:
		s.refuse(d.Origin, fmt.Errorf("%s is encrypted with SOPS as a whole, so its kind and name are not known: encrypt only its data", what))
	case s.how.Others != RefuseOthers:
		s.skip(why, d.Origin, d.Header)
	case why == Encrypted:
		s.refuse(d.Origin, fmt.Errorf("%s is encrypted with SOPS and %s", what, leave))
	default:
		s.refuse(d.Origin, fmt.Errorf("%s is an object of Flux or Argo CD and %s", what, leave))
	}
}

// isCipher reports whether a value is encrypted with SOPS.
func isCipher(value string) bool { return strings.HasPrefix(value, "ENC[") }

// isEncrypted reports whether an object has SOPS metadata.
func isEncrypted(u *unstructured.Unstructured) bool {
	_, ok := u.Object["sops"].(map[string]any)
	return ok
}
