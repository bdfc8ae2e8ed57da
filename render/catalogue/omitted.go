package catalogue

import (
	"headgate.dev/headgate/render/manifest"
)

// An Omitted is something that a commit contains and that is skipped on purpose: an encrypted
// document, an ignored file, a symbolic link. An object that came from it was not removed.
type Omitted struct {
	Why    Why
	Origin manifest.Origin // the document, file or directory
	ID     manifest.ID     // of the object, as the document has it; zero where everything at the path is meant
}

// omit notes that something is skipped. The header is zero where no document was read.
func (w *walk) omit(why Why, at manifest.Origin, h manifest.Header) {
	o := Omitted{Why: why, Origin: at}
	if h.Kind != "" && h.Name != "" && !isCipher(h.Kind) && !isCipher(h.APIVersion) && !isCipher(h.Name) && !isCipher(h.Namespace) {
		o.ID = h.ID()
	}
	w.omitted = append(w.omitted, o)
}
