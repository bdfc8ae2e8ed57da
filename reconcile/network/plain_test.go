package network

import (
	"net/url"
	"testing"
)

// Everyone on the network path can read a token that is sent over plain HTTP, so Headgate sends it only to hosts that the user
// allows by name.
func TestPlain(t *testing.T) {
	allowed := Plain{"git.example.org", "forge.example.org:3000"}
	for to, ok := range map[string]bool{
		"https://other.example.org":           true,
		"http://localhost:3000":               true,
		"http://127.0.0.1":                    true,
		"http://[::1]:8080":                   true,
		"http://[::ffff:127.0.0.1]:8080":      true,
		"http://GIT.example.org":              true,
		"http://git.example.org:8080":         true, // a name without a port allows every port
		"http://forge.example.org:3000":       true,
		"http://forge.example.org":            false,
		"http://forge.example.org:3001":       false,
		"http://other.example.org":            false,
		"http://git.example.org.evil.example": false,
		"http://evil.example/git.example.org": false,
		"http://git.example.org@evil.example": false,
		"http://localhost.evil.example":       false,
		"http://10.0.0.1:3000":                false,
		"ftp://other.example.org":             false,
	} {
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		if err := allowed.Check(u); (err == nil) != ok {
			t.Errorf("%s: %v", to, err)
		}
	}
}
