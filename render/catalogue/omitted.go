package catalogue

import (
	"headgate.dev/headgate/render/manifest"
)

// An Omitted is a part of a commit that is skipped on purpose: an encrypted document, an ignored file, a symbolic link. Objects
// that once came from it do not count as removed.
type Omitted struct {
	Why    Why
	Origin manifest.Origin // the document, file or directory
	ID     manifest.ID     // the object's identity in the document; zero for everything at the path
}

// omit records that something is skipped. The header is zero if no document was read.
func (w *walk) omit(why Why, at manifest.Origin, h manifest.Header) {
	o := Omitted{Why: why, Origin: at}
	if h.Kind != "" && h.Name != "" && !isCipher(h.Kind) && !isCipher(h.APIVersion) && !isCipher(h.Name) && !isCipher(h.Namespace) {
		o.ID = h.ID()
	}
	w.omitted = append(w.omitted, o)
}
