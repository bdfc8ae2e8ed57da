package remote

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"headgate.dev/headgate/reconcile/network"
)

// An own transport has a CA, a client certificate or a proxy that only this server needs. Its errors tell which of them is wrong.
type own struct {
	*network.Own

	auth  Auth
	asked *atomic.Bool // the server asked for a client certificate, and has not answered since
}

// own returns the transport for a server that needs other settings than the rest; nil if it needs none.
func (a Auth) own() (*own, error) {
	if a.CA == "" && a.Certificate == "" && a.Proxy == "" {
		return nil, nil
	}
	roots, err := a.roots()
	if err != nil {
		return nil, err
	}
	proxy, err := a.proxy()
	if err != nil {
		return nil, err
	}
	pair, err := a.pair(time.Now())
	if err != nil {
		return nil, err
	}
	asked := new(atomic.Bool)
	// The certificate is sent whatever authorities the server names, so that a refusal is about this certificate.
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked.Store(true)
		return pair, nil
	}}
	return &own{network.With(config, proxy), a, asked}, nil
}

// RoundTrip sends a request.
func (o *own) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := o.Own.RoundTrip(req)
	switch {
	case err != nil && req.Context().Err() != nil:
		return nil, err
	case err != nil:
		return nil, o.explain(err)
	case res.StatusCode == http.StatusProxyAuthRequired: // over plain http, where a proxy answers in place of the server
		_ = res.Body.Close()
		return nil, wrongProxy(network.ProxyError(res.StatusCode))
	}
	o.asked.Store(false)
	return res, nil
}

// explain returns an error about the setting that a failed request is about, or the error itself.
func (o *own) explain(err error) error {
	if as[network.RefusedError](err) {
		return err
	}
	if status, is := errors.AsType[network.ProxyError](err); is {
		return wrongProxy(status)
	}
	if at, is := errors.AsType[*net.OpError](err); is && at.Op == "proxyconnect" {
		return proxyProblem("the proxy cannot be reached: %s; check its address", network.Foreign(at.Err))
	}
	if o.auth.CA != "" && as[x509.UnknownAuthorityError](err) {
		return credentialProblem("neither ca.crt nor the system has the CA that signed the certificate of the server; put its certificate into ca.crt")
	}
	if o.asked.Load() {
		return o.auth.unidentified(err)
	}
	return err
}

// unidentified returns the error for a server that asked for a client certificate, and closed the connection. Its reason may be lost.
func (a Auth) unidentified(err error) error {
	if a.Certificate == "" {
		return credentialProblem("the server asked for a client certificate, got none, and ended the connection (%s); put one into tls.crt, and its key into tls.key", network.Foreign(err))
	}
	return credentialProblem("the server asked for a client certificate, got that of tls.crt, and ended the connection (%s); check who has to issue it, and replace it", network.Foreign(err))
}

func wrongProxy(status network.ProxyError) error {
	if status == http.StatusProxyAuthRequired {
		return proxyProblem("the proxy refuses the credentials; check username and password of the proxy")
	}
	return proxyProblem("%s; check that it may connect to the server", status)
}

// roots returns the certificates that sign servers; nil for those of the system only.
func (a Auth) roots() (*x509.CertPool, error) {
	if a.CA == "" {
		return nil, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil { // the system has none
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM([]byte(a.CA)) {
		return nil, credentialProblem("the CA holds no certificate in PEM; put it into ca.crt")
	}
	return roots, nil
}

// pair returns the client certificate with its key, if it is valid, or an empty one if there is none. No text quotes the key.
func (a Auth) pair(now time.Time) (*tls.Certificate, error) {
	if a.Certificate == "" {
		return &tls.Certificate{}, nil
	}
	pair, err := tls.X509KeyPair([]byte(a.Certificate), []byte(a.Key))
	if err != nil {
		return nil, credentialProblem("tls.crt and tls.key are no client certificate with its key; they must be PEM, not encrypted, and belong together")
	}
	switch of := pair.Leaf; {
	case now.After(of.NotAfter):
		return nil, credentialProblem("the client certificate in tls.crt has expired on %s; replace it", of.NotAfter.UTC().Format(time.DateOnly))
	case now.Before(of.NotBefore):
		return nil, credentialProblem("the client certificate in tls.crt is valid from %s only; check the clock of this machine", of.NotBefore.UTC().Format(time.DateOnly))
	}
	return &pair, nil
}

// proxySchemes are the kinds of proxies.
var proxySchemes = []string{"http", "https", "socks5"}

// proxy parses the URL of the proxy; nil for none.
func (a Auth) proxy() (*url.URL, error) {
	if a.Proxy == "" {
		return nil, nil
	}
	u, err := url.Parse(a.Proxy) // the error quotes the password
	if err != nil || u.Hostname() == "" || !slices.Contains(proxySchemes, u.Scheme) {
		return nil, proxyProblem("the address of the proxy is no URL with http, https or socks5")
	}
	return u, nil
}
