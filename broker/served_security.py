"""The rows of the APIs by which clients say who they are, and by which rights, credentials and quotas are managed."""

from typing import Final

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import ResourceType
from odradek.broker.api import (
    alter_client_quotas,
    alter_user_scram_credentials,
    create_acls,
    delete_acls,
    describe_acls,
    describe_client_quotas,
    describe_user_scram_credentials,
    sasl_authenticate,
    sasl_handshake,
)
from odradek.broker.handling.context import Api
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from odradek.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from odradek.protocol.messages.create_acls import CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsRequest
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from odradek.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest

ALTER, DESCRIBE, CLUSTER = Operation.ALTER, Operation.DESCRIBE, ResourceType.CLUSTER
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS

OF_SECURITY: Final[tuple[Api, ...]] = (
    Api(DescribeAclsRequest, describe_acls.handle, describe_acls.fail, served=(1, 3), needs=((DESCRIBE, CLUSTER),)),
    Api(
        CreateAclsRequest,
        create_acls.handle,
        create_acls.fail,
        served=(1, 3),
        needs=((ALTER, CLUSTER),),
        is_forwarded=True,
    ),
    Api(
        DeleteAclsRequest,
        delete_acls.handle,
        delete_acls.fail,
        served=(1, 3),
        needs=((ALTER, CLUSTER),),
        is_forwarded=True,
    ),
    Api(
        DescribeClientQuotasRequest,
        describe_client_quotas.handle,
        describe_client_quotas.fail,
        served=(0, 1),
        needs=((DESCRIBE_CONFIGS, CLUSTER),),
    ),
    Api(
        AlterClientQuotasRequest,
        alter_client_quotas.handle,
        alter_client_quotas.fail,
        served=(0, 1),
        needs=((ALTER_CONFIGS, CLUSTER),),
    ),
    Api(
        DescribeUserScramCredentialsRequest,
        describe_user_scram_credentials.handle,
        describe_user_scram_credentials.fail,
        served=(0, 0),
        needs=((DESCRIBE, CLUSTER),),
    ),
    Api(
        AlterUserScramCredentialsRequest,
        alter_user_scram_credentials.handle,
        alter_user_scram_credentials.fail,
        served=(0, 0),
        needs=((ALTER, CLUSTER),),
    ),
    Api(
        SaslHandshakeRequest,
        sasl_handshake.handle,
        sasl_handshake.fail,
        served=(0, 1),
        needs=(),
        is_before_authentication=True,
    ),
    Api(
        SaslAuthenticateRequest,
        sasl_authenticate.handle,
        sasl_authenticate.fail,
        served=(0, 2),
        needs=(),
        is_before_authentication=True,
    ),
)
