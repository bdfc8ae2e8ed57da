package render_test

import (
	"encoding/base64"

	"headgate.dev/headgate/fixtures/certificate"
)

// theCA is a CA certificate, because a bundle without a certificate counts as a placeholder. caBundle is its form in objects.
var (
	theCA, _ = certificate.New("ca.example.org")
	caBundle = base64.StdEncoding.EncodeToString(theCA)
)
