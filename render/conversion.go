package render

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Conversion configures conversion webhooks, because a package does not hold their service and CA bundle. The zero value drops the
// webhook of a CRD with a single declared version and is an error for any other CRD. It does not change a webhook that names its
// own service or a URL.
type Conversion struct {
	Strategy  ConversionStrategy
	Service   string // Inject: the name of the service; "" means the name of the package, as in Crossplane
	Namespace string // Inject: its namespace
	Port      int64  // Inject: 0 means 9443
	CABundle  []byte // Inject: PEM
}

// ConversionStrategy is Inject, None or, if unset, safe.
type ConversionStrategy string

// The strategies.
const (
	ConversionSafe   ConversionStrategy = ""
	ConversionInject ConversionStrategy = "Inject"
	ConversionNone   ConversionStrategy = "None"

	// ConversionUnknown is for comparisons: a webhook whose service is not known gets a placeholder and a warning, so that the
	// schemas can be compared. Such a commit must not be applied.
	ConversionUnknown ConversionStrategy = "Unknown"
)

// howToConvert is advice about a conversion webhook whose service is not known.
const howToConvert = "set conversion to Inject, with service, namespace and CA, or to None if no objects are stored in any but one version"

// RuleConversion is the rule of a CRD whose conversion webhook has no known service.
const RuleConversion = "conversion-service-unknown"

// RuleWebhook is the rule of a webhook configuration whose service is not known.
const RuleWebhook = "webhook-service-unknown"

func (c Conversion) check() error {
	switch {
	case c.Strategy == ConversionUnknown:
		return nil
	case c.Strategy != ConversionSafe && c.Strategy != ConversionInject && c.Strategy != ConversionNone:
		return fmt.Errorf("conversion must be %s, %s or unset, not %q", ConversionInject, ConversionNone, c.Strategy)
	case c.Strategy == ConversionInject && c.Namespace == "":
		return fmt.Errorf("conversion %s needs the namespace of the service", ConversionInject)
	case c.Strategy == ConversionInject && len(c.CABundle) == 0:
		return fmt.Errorf("conversion %s needs the CA bundle of the service", ConversionInject)
	}
	return nil
}

// digest returns a hash of all settings.
func (c Conversion) digest() (string, error) {
	raw, err := json.Marshal(c)
	return digest(raw), err
}

// settle applies the conversion settings to the webhooks of u. shipper is the package that contains the object, or nil.
func (c Conversion) settle(u *unstructured.Unstructured, shipper *catalogue.Package) error {
	service := c.Service
	if service == "" && shipper != nil {
		service = shipper.Name
	}
	switch {
	case manifest.IDOf(u).IsCRD(), crossplane.IsMRD(manifest.IDOf(u)):
		return c.settleCRD(u, service)
	case manifest.IDOf(u).IsWebhookConfiguration() && c.Strategy == ConversionInject:
		for _, w := range webhooksOf(u) {
			c.inject(child(w, "clientConfig"), service)
		}
	}
	return nil
}

func (c Conversion) settleCRD(u *unstructured.Unstructured, service string) error {
	spec := child(u.Object, "spec")
	conversion, _ := spec["conversion"].(map[string]any)
	if conversion["strategy"] != "Webhook" {
		return nil
	}
	webhook := child(conversion, "webhook")
	client := child(webhook, "clientConfig")
	if isComplete(client) {
		return nil
	}
	versions, _ := spec["versions"].([]any)
	switch {
	case c.Strategy == ConversionInject && service == "":
		return fmt.Errorf("CRD %s is converted by a webhook of no package: set the service of the conversion", u.GetName())
	case c.Strategy == ConversionInject:
		c.inject(client, service)
	case c.Strategy == ConversionNone, len(versions) == 1:
		delete(spec, "conversion")
	default:
		if c.Strategy == ConversionUnknown {
			placeholder := child(client, "service")
			placeholder["name"], placeholder["namespace"] = cmp.Or(service, "unknown"), "unknown"
		}
		return fmt.Errorf("CRD %s converts between its %d versions by a webhook, and the service for it is not known: %s", u.GetName(), len(versions), howToConvert)
	}
	return nil
}

// inject fills in the client of a webhook, except its path.
func (c Conversion) inject(client map[string]any, name string) {
	service := child(client, "service")
	service["name"] = name
	service["namespace"] = c.Namespace
	service["port"] = cmp.Or(c.Port, 9443)
	client["caBundle"] = base64.StdEncoding.EncodeToString(c.CABundle)
}

// isComplete reports whether an API server can call a client.
func isComplete(client map[string]any) bool {
	text := func(m map[string]any, key string) string {
		s, _ := m[key].(string)
		return s
	}
	service, _ := client["service"].(map[string]any)
	return text(client, "url") != "" || text(service, "name") != "" && text(service, "namespace") != ""
}

// findings warns about a webhook configuration of a package that names a service which Crossplane would replace.
func (c Conversion) findings(o manifest.Object) []manifest.Finding {
	if !o.ID().IsWebhookConfiguration() || c.Strategy == ConversionInject || len(webhooksOf(o.Unstructured)) == 0 {
		return nil
	}
	return []manifest.Finding{{
		Rule: RuleWebhook, Severity: manifest.Warning, Origin: o.Origin, About: manifest.About{Object: o.ID()},
		Message: fmt.Sprintf("%s is applied with the service that its package names, which Crossplane would replace with the provider's: if no such service answers, the objects that the webhook covers cannot be written", o.ID()),
		Fix:     "set conversion to Inject, with service, namespace and CA",
	}}
}

func webhooksOf(u *unstructured.Unstructured) []map[string]any {
	list, _ := u.Object["webhooks"].([]any)
	var all []map[string]any
	for _, w := range list {
		if m, ok := w.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// child returns the mapping below a key and creates it if necessary.
func child(m map[string]any, key string) map[string]any {
	c, ok := m[key].(map[string]any)
	if !ok {
		c = map[string]any{}
		m[key] = c
	}
	return c
}
