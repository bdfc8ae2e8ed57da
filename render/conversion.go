package render

// Conversion says what becomes of conversion webhooks, whose service and CA bundle
// a package does not hold. The zero value drops the webhook of a CRD with a single
// declared version and is an error for any other.
type Conversion struct {
	Strategy  ConversionStrategy
	Service   string // Inject: the name of the service
	Namespace string // Inject: its namespace
	Port      int64  // Inject: 0 is 9443
	CABundle  []byte // Inject: PEM
}

// ConversionStrategy is Inject, None or, where unset, what is safe.
type ConversionStrategy string

// The strategies.
const (
	ConversionSafe   ConversionStrategy = ""
	ConversionInject ConversionStrategy = "Inject"
	ConversionNone   ConversionStrategy = "None"
)
