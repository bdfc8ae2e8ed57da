package controller

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Endpoints name where a Service finds the leader: only the leader has Syncs that a webhook can wake. The zero value is for none.
type Endpoints struct {
	Slice   string // an EndpointSlice in the namespace of the controller
	Address string // of this replica
}

// entersAgain is how often the leader enters its address: an installation that is repeated empties the EndpointSlice.
const entersAgain = 10 * time.Second

// enterAddress keeps the address of this replica in an EndpointSlice until ctx is done.
func (c *controller) enterAddress(ctx context.Context) {
	trouble := ""
	for ctx.Err() == nil {
		err := c.enterOnce(ctx)
		switch {
		case err == nil:
			trouble = ""
		case err.Error() != trouble && ctx.Err() == nil:
			trouble = err.Error()
			slog.Warn("webhooks do not reach this replica", "endpointSlice", c.Endpoints.Slice, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(entersAgain):
		}
	}
}

func (c *controller) enterOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	body, err := json.Marshal(map[string]any{"endpoints": []any{map[string]any{"addresses": []string{c.Endpoints.Address}, "conditions": map[string]any{"ready": true}}}})
	if err != nil {
		return err
	}
	slice := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Home, Name: c.Endpoints.Slice},
	}
	return c.client.Patch(ctx, slice, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldOwner))
}
