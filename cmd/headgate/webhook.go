package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/target"
)

// webhooks listens on an address for webhooks of the targets that have one. The returned function serves them until ctx
// is done.
func webhooks(ctx context.Context, address string, targets []*target.Target) (serve func(), err error) {
	hooks := &forge.Webhooks{Log: logHandled}
	var problems []error
	for _, one := range targets {
		s, err := one.Subscriber()
		if err != nil {
			of := one.Loop.Reconciler.Sync
			problems = append(problems, fmt.Errorf("sync %s: %w", of.Name, err))
		}
		if s != nil {
			hooks.Subscribers = append(hooks.Subscribers, *s)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if len(hooks.Subscribers) == 0 {
		return nil, usagef("--webhook-address: no Sync has source.webhook; set it to the secret that verifies deliveries")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--webhook-address: %w", err)
	}
	slog.Info("hearing webhooks", "address", listener.Addr().String(), "path", webhookPath, "syncs", len(hooks.Subscribers))
	return func() { answer(ctx, listener, hooks) }, nil
}

const webhookPath = "/webhook"

// answer serves requests until ctx is done, and then finishes the open ones. Timeouts and size limits protect it from
// strangers.
func answer(ctx context.Context, listener net.Listener, hooks http.Handler) {
	mux := http.NewServeMux()
	mux.Handle("POST "+webhookPath, hooks)
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      20 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		slog.Error("webhooks are not heard any more; pushes are found by looking", "error", err)
	}
	if !stop() {
		<-ended
	}
}

// logHandled logs the result of a request. Unsigned requests are logged at debug level only, because strangers may send
// any number of them.
func logHandled(h forge.Handled) {
	log := slog.With("forge", h.Forge, "code", h.Code, "said", h.Said)
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
