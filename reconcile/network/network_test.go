package network_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"headgate.dev/headgate/reconcile/network"
)

// A client that can reach a metadata service gets the machine's credentials, so every spelling of the address is refused.
func TestCheck(t *testing.T) {
	for address, refused := range map[string]bool{
		"169.254.169.254":        true,
		"169.254.170.2":          true, // containers on AWS
		"168.63.129.16":          true,
		"100.100.100.200":        true,
		"192.0.0.192":            true,
		"fd00:ec2::254":          true,
		"fd20:ce::254":           true,
		"fe80::1":                true,
		"fe80::1%eth0":           true,
		"fd00:ec2::254%eth0":     true,
		"::ffff:169.254.169.254": true,
		"64:ff9b::a9fe:a9fe":     true,
		"2002:a9fe:a9fe::1":      true,
		"224.0.0.1":              true,
		"127.0.0.1":              false,
		"10.0.0.1":               false,
		"192.168.1.1":            false,
		"140.82.121.3":           false,
		"fd12:3456::1":           false,
		"64:ff9b::8c52:7903":     false,
	} {
		err := network.Check(netip.MustParseAddr(address))
		if _, is := errors.AsType[network.RefusedError](err); is != refused {
			t.Errorf("Check(%s) = %v, refused: %t", address, err, refused)
		}
	}
	for host, refused := range map[string]bool{"metadata.google.internal.": true, "METADATA": true, "169.254.169.254": true, "github.com": false} {
		if err := network.CheckHost(host); (err != nil) != refused {
			t.Errorf("CheckHost(%s) = %v, refused: %t", host, err, refused)
		}
	}
}

// A redirect could lead to an address that no user would configure.
func TestRedirectIsRefused(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/latest/meta-data", http.StatusFound))
	defer server.Close()
	resp, err := (&http.Client{Transport: network.Default}).Get(server.URL)
	if err == nil {
		_ = resp.Body.Close()
	}
	if _, refused := errors.AsType[network.RefusedError](err); !refused {
		t.Errorf("Get(...) = %v, not refused", err)
	}
}

// The owner of a name chooses its address, so the dialer also checks the address.
func TestControl(t *testing.T) {
	if err := network.Control("tcp", "169.254.169.254:80", nil); err == nil {
		t.Error("169.254.169.254:80 is dialled")
	}
	if err := network.Control("tcp", "[fd00:ec2::254]:80", nil); err == nil {
		t.Error("[fd00:ec2::254]:80 is dialled")
	}
	if err := network.Control("tcp", "127.0.0.1:80", nil); err != nil {
		t.Error(err)
	}
}
