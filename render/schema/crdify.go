package schema

import (
	"encoding/json"
	"slices"
	"sync"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
)

// strict is how crdify judges: as it does by itself, but that what allows more breaks nothing,
// and words are words. What it does not know it is not asked about.
var strict = config.Config{
	UnhandledEnforcement: config.EnforcementPolicyNone,
	Conversion:           config.ConversionPolicyIgnore,
	Validations: []config.ValidationConfig{
		{Name: "description", Enforcement: config.EnforcementPolicyNone},
		{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": "Allow"}},
		{Name: "pattern", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"removalPolicy": "Allow"}},
		{Name: "nullable", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": "Allow"}},
	},
}

// registry holds what crdify can compare of one schema.
func registry() validations.Registry {
	r := validations.NewRegistry()
	for _, register := range []func(validations.Registry){
		property.RegisterDefault, property.RegisterDescription, property.RegisterEnum, property.RegisterNullable,
		property.RegisterPattern, property.RegisterRequired, property.RegisterType,
		property.RegisterMaximum, property.RegisterMaxItems, property.RegisterMaxLength, property.RegisterMaxProperties,
		property.RegisterMinimum, property.RegisterMinItems, property.RegisterMinLength, property.RegisterMinProperties,
	} {
		register(r)
	}
	return r
}

type comparator = validations.Comparator[apiextensions.JSONSchemaProps]

// comparators are those of crdify by the keyword that they compare.
var comparators = sync.OnceValue(func() map[string]comparator {
	all, err := validations.LoadValidationsFromRegistry(registry())
	if err == nil {
		all, err = validations.ConfigureValidations(all, registry(), strict)
	}
	if err != nil {
		panic(err) // of what is fixed above, and any test sees
	}
	byKeyword := make(map[string]comparator, len(all))
	for keyword, v := range all {
		if c, ok := v.(comparator); ok { // the registry holds no others
			byKeyword[keyword] = c
		}
	}
	return byKeyword
})

// crdify judges the keywords of one schema that differ: which of them break something, of
// those that it knows. A schema that cannot be read has none that it knows.
func crdify(was, is map[string]any, differ []string) (broken, known map[string]bool) {
	broken, known = map[string]bool{}, map[string]bool{}
	from, to := propsOf(was, differ), propsOf(is, differ)
	if from == nil || to == nil {
		return broken, known
	}
	for _, keyword := range differ {
		if compares, ok := comparators()[keyword]; ok {
			known[keyword] = true
			broken[keyword] = len(compares.Compare(from, to).Errors) > 0
		}
	}
	return broken, known
}

// propsOf is as much of a schema as some keywords say.
func propsOf(schema map[string]any, keywords []string) *apiextensions.JSONSchemaProps {
	said := map[string]any{}
	for key, value := range schema {
		if slices.Contains(keywords, key) {
			said[key] = value
		}
	}
	b, err := json.Marshal(said)
	if err != nil {
		return nil
	}
	props := new(apiextensions.JSONSchemaProps)
	if json.Unmarshal(b, props) != nil {
		return nil
	}
	return props
}
