package network

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// Quiet returns a transport that hides the bodies of error responses, so that no message, log or comment can repeat
// them. A commit or a redirect may name any host, and the author of the commit must not see the answer of an internal
// one. The status code remains, and the part of the body that keep returns. A nil keep keeps nothing.
func Quiet(next http.RoundTripper, keep func(body []byte) []byte) http.RoundTripper {
	return quiet{next, keep}
}

type quiet struct {
	next http.RoundTripper
	keep func([]byte) []byte
}

// maxErrorBody bounds how much of an error body is read.
const maxErrorBody = 64 << 10

func (q quiet) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := q.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	known(resp)
	if resp.StatusCode < http.StatusMultipleChoices {
		return resp, nil
	}
	var kept []byte
	if q.keep != nil {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is enough
		kept = q.keep(body)
	}
	_ = resp.Body.Close()
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(kept)), int64(len(kept))
	resp.Header.Del("Content-Encoding")
	return resp, nil
}

// known replaces the text of a status line, which the server chooses, by the standard text.
func known(resp *http.Response) {
	resp.Status = strings.TrimSpace(strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode))
}

// registryCode matches an error code of a registry, which is a word of the specification and not free text.
var registryCode = regexp.MustCompile(`^(BLOB|DENIED|DIGEST|MANIFEST|NAME|SIZE|TAG|TOOMANYREQUESTS|UNAUTHORIZED|UNAVAILABLE|UNKNOWN|UNSUPPORTED)(_[A-Z]{1,12}){0,3}$`)

// RegistryCodes keeps the error codes of a registry, from which its clients decide whether to retry.
func RegistryCodes(body []byte) []byte {
	type code struct {
		Code    string `json:"code"`
		Message string `json:"message"` // our own text: the code in lower case
	}
	var all, kept struct {
		Errors []code `json:"errors"`
	}
	if json.Unmarshal(body, &all) != nil {
		return nil
	}
	for _, e := range all.Errors {
		if registryCode.MatchString(e.Code) {
			kept.Errors = append(kept.Errors, code{e.Code, strings.ToLower(strings.ReplaceAll(e.Code, "_", " "))})
		}
	}
	if kept.Errors == nil {
		return nil
	}
	raw, err := json.Marshal(kept)
	if err != nil {
		return nil
	}
	return raw
}
