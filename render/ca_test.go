package render_test

import (
	"encoding/base64"

	"headgate.dev/headgate/fixtures/certificate"
)

// theCA is a CA certificate: a bundle without one counts as a placeholder. caBundle is how objects hold it.
var (
	theCA, _ = certificate.New("ca.example.org")
	caBundle = base64.StdEncoding.EncodeToString(theCA)
)
