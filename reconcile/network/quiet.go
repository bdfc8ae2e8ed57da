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

// Quiet returns a transport whose clients never see the body of an answer that is an error, so that no message, log or
// comment can repeat it: a commit or a redirect may name any host, and the answer of an internal one is not for the
// author of the commit. What remains are the status code and what keep makes of the body; nil keeps nothing.
func Quiet(next http.RoundTripper, keep func(body []byte) []byte) http.RoundTripper {
	return quiet{next, keep}
}

type quiet struct {
	next http.RoundTripper
	keep func([]byte) []byte
}

// maxErrorBody bounds what is read of the body of an error.
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
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what is missing is not kept
		kept = q.keep(body)
	}
	_ = resp.Body.Close()
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(kept)), int64(len(kept))
	resp.Header.Del("Content-Encoding")
	return resp, nil
}

// known replaces the words of a status line, which the server chooses, by the words of the standard.
func known(resp *http.Response) {
	resp.Status = strings.TrimSpace(strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode))
}

// registryCode is an error code as registries write it. It is a word of a specification, and not a text.
var registryCode = regexp.MustCompile(`^(BLOB|DENIED|DIGEST|MANIFEST|NAME|SIZE|TAG|TOOMANYREQUESTS|UNAUTHORIZED|UNAVAILABLE|UNKNOWN|UNSUPPORTED)(_[A-Z]{1,12}){0,3}$`)

// RegistryCodes keeps the error codes of a registry, which tell its clients whether to try again.
func RegistryCodes(body []byte) []byte {
	type code struct {
		Code    string `json:"code"`
		Message string `json:"message"` // ours: the code in small letters
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
