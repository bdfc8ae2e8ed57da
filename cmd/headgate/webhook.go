package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/target"

	"github.com/spf13/cobra"
)

// subscribers returns the subscribers of the targets that have a webhook.
func subscribers(targets []*target.Target) (all []forge.Subscriber, err error) {
	var problems []error
	for _, one := range targets {
		s, err := one.Subscriber()
		if err != nil {
			of := one.Loop.Reconciler.Sync
			problems = append(problems, fmt.Errorf("sync %s: %w", of.Name, err))
		}
		if s != nil {
			all = append(all, *s)
		}
	}
	return all, errors.Join(problems...)
}

// webhooks listens on an address for webhooks. The returned function serves them until ctx is done.
func webhooks(ctx context.Context, at listener, hooks *forge.Webhooks) (serve func(), err error) {
	if len(hooks.Subscribers) == 0 {
		return nil, usagef("--webhook-address: no Sync has source.webhook; set it to the secret that verifies deliveries")
	}
	heard, err := at.listen(ctx)
	if err != nil {
		return nil, err
	}
	slog.Info("hearing webhooks", "address", heard.Addr().String(), "path", webhookPath, "syncs", len(hooks.Subscribers))
	return func() { answer(ctx, heard, webhookPath, hooks) }, nil
}

// webhooksOfObjects listens for webhooks at a path for each namespace. The returned function serves them until ctx is done.
func webhooksOfObjects(ctx context.Context, at listener, hooks *forge.Webhooks) (serve func(), err error) {
	heard, err := at.listen(ctx)
	if err != nil {
		return nil, err
	}
	slog.Info("listening", "for", "--webhook-address", "address", heard.Addr().String())
	return func() { answer(ctx, heard, webhookPath+"/{"+forge.PlaceOfWebhooks+"}", hooks) }, nil
}

// A listener configures where Headgate receives webhooks, and whether with TLS.
type listener struct {
	address, cert, key string
	plain              bool
}

func (l *listener) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&l.address, "webhook-address", "", "receive webhooks on this `address`, such as :9292 (default: none)")
	flags.StringVar(&l.cert, "webhook-cert", "", "`file` with the TLS certificate for webhooks, in PEM; it is read again for new connections")
	flags.StringVar(&l.key, "webhook-key", "", "`file` with the key of --webhook-cert, in PEM")
	flags.BoolVar(&l.plain, "webhook-plain-http", false, "receive webhooks without TLS also on addresses that other machines reach")
}

// listen listens with TLS, or only on this machine unless the user allows plain HTTP, because some forges send the secret itself.
func (l listener) listen(ctx context.Context) (net.Listener, error) {
	switch {
	case (l.cert == "") != (l.key == ""):
		return nil, usagef("--webhook-cert and --webhook-key belong together; set both")
	case l.cert != "" && l.plain:
		return nil, usagef("--webhook-plain-http is for a listener without a certificate; leave it out, or --webhook-cert and --webhook-key")
	case l.cert != "":
		if _, err := tls.LoadX509KeyPair(l.cert, l.key); err != nil {
			return nil, fmt.Errorf("--webhook-cert: %w", err)
		}
	}
	heard, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.address)
	if err != nil {
		return nil, fmt.Errorf("--webhook-address: %w", err)
	}
	if l.cert != "" {
		return tls.NewListener(heard, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(l.cert, l.key)
			return &c, err
		}}), nil
	}
	if at, ok := heard.Addr().(*net.TCPAddr); !l.plain && (!ok || !at.IP.IsLoopback()) {
		_ = heard.Close()
		return nil, usagef("--webhook-address: %s has no TLS and is reached from other machines; set --webhook-cert and --webhook-key, or --webhook-plain-http if a proxy in front of it terminates TLS", l.address)
	}
	return heard, nil
}

const webhookPath = "/webhook"

// answer serves webhooks until ctx is done.
func answer(ctx context.Context, heard net.Listener, path string, hooks http.Handler) {
	mux := http.NewServeMux()
	mux.Handle("POST "+path, hooks)
	if err := serve(ctx, heard, mux); err != nil {
		slog.Error("Headgate no longer receives webhooks; it finds pushes by polling", "error", err)
	}
}

// logHandled logs the result of a request. Unsigned requests are logged at debug level only, because anyone may send any number of
// them.
func logHandled(h forge.Handled) {
	log := slog.With("forge", h.Forge, "code", h.Code, "answer", h.Message)
	what := "push"
	switch {
	case h.Event.Pull:
		what, log = "pull request", log.With("repository", h.Event.Repositories[0])
	case len(h.Event.Refs) > 0:
		log = log.With("repository", h.Event.Repositories[0], "refs", h.Event.Refs[:min(len(h.Event.Refs), 10)])
	}
	if h.Woken > 0 {
		log.Info(what, "syncs", h.Woken)
		return
	}
	log.Debug("webhook")
}
