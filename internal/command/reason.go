package command

import "strings"

// Reason says why a command was not executed, or failed. Results and dead letters have it as their error code. The set is
// closed; the table tidemark.command_reason holds the same.
type Reason string

// The reasons, in the order in which a command is checked.
const (
	EnvelopeInvalid            Reason = "envelope.invalid"
	EnvelopeTooLarge           Reason = "envelope.too_large"
	EnvelopeUnsupportedVersion Reason = "envelope.unsupported_version"

	ContractUnknownService       Reason = "contract.unknown_service"
	ContractUnknownCommand       Reason = "contract.unknown_command"
	ContractUnsupportedVersion   Reason = "contract.unsupported_version"
	ContractUnknownSchemaVersion Reason = "contract.unknown_schema_version"
	ContractPayloadInvalid       Reason = "contract.payload_invalid"
	ContractDisabled             Reason = "contract.disabled"

	IdentityTopicMismatch      Reason = "identity.topic_mismatch"
	IdentitySignatureMissing   Reason = "identity.signature_missing"
	IdentitySignatureInvalid   Reason = "identity.signature_invalid"
	IdentityKeyUnknown         Reason = "identity.key_unknown"
	IdentityKeyRevoked         Reason = "identity.key_revoked"
	IdentityProducerNotAllowed Reason = "identity.producer_not_allowed"
	IdentityTenantNotAllowed   Reason = "identity.tenant_not_allowed"

	IdempotencyKeyReused Reason = "idempotency.key_reused"
	IdempotencyExpired   Reason = "idempotency.expired"

	SQLConstraint   Reason = "sql.constraint"
	SQLData         Reason = "sql.data"
	SQLBusinessRule Reason = "sql.business_rule"
	SQLPermission   Reason = "sql.permission"
	SQLUndefined    Reason = "sql.undefined"

	RuntimeRetriesExhausted Reason = "runtime.retries_exhausted"
	RuntimeTimeout          Reason = "runtime.timeout"
	RuntimeResultTooLarge   Reason = "runtime.result_too_large"
	RuntimeResultInvalid    Reason = "runtime.result_invalid"
	RuntimeInternal         Reason = "runtime.internal"
)

// Reasons is the closed set.
func Reasons() []Reason {
	return []Reason{
		EnvelopeInvalid, EnvelopeTooLarge, EnvelopeUnsupportedVersion,
		ContractUnknownService, ContractUnknownCommand, ContractUnsupportedVersion, ContractUnknownSchemaVersion,
		ContractPayloadInvalid, ContractDisabled,
		IdentityTopicMismatch, IdentitySignatureMissing, IdentitySignatureInvalid, IdentityKeyUnknown, IdentityKeyRevoked,
		IdentityProducerNotAllowed, IdentityTenantNotAllowed,
		IdempotencyKeyReused, IdempotencyExpired,
		SQLConstraint, SQLData, SQLBusinessRule, SQLPermission, SQLUndefined,
		RuntimeRetriesExhausted, RuntimeTimeout, RuntimeResultTooLarge, RuntimeResultInvalid, RuntimeInternal,
	}
}

// Class is what stands before the dot: envelope, contract, identity, idempotency, sql or runtime.
func (r Reason) Class() string {
	class, _, _ := strings.Cut(string(r), ".")
	return class
}

// Unregistered tells whether the record named no registered command.
func (r Reason) Unregistered() bool {
	return r == ContractUnknownService || r == ContractUnknownCommand || r == ContractUnsupportedVersion
}

// Refusal is why a command is refused before it is executed. Its text is for people, at most mostMessage bytes long, and has no
// value of a payload.
type Refusal struct {
	Reason   Reason
	Problems []string // each: what has which problem, and what it must be
}

const mostMessage = 1024

func (r *Refusal) Error() string {
	text := string(r.Reason) + ": "
	for i, problem := range r.Problems {
		if i > 0 {
			text += "; "
		}
		if len(text)+len(problem) > mostMessage-len("; and more") {
			return text + "and more"
		}
		text += problem
	}
	return text
}
