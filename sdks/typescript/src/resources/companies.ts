/** Companies: their members and invitations. */
import * as operations from '../generated/operations.gen.ts';
import type * as types from '../generated/types.gen.ts';
import type { KeyedRequestOptions, RequestOptions } from '../options.ts';
import type { Pages } from '../pages.ts';
import { type Filters, idOf } from '../request.ts';
import { Resource } from '../resource.ts';

/** A company, or its ID. */
export type CompanyRef = string | { id: string };
/** A member, or the ID of the user. */
export type MemberRef = string | { userId: string };
/** An invitation, or its ID. */
export type InvitationRef = string | { id: string };

/** Companies. They need a session: pass its token as `apiKey`. */
export class Companies extends Resource {
  /** Creates a company that the user owns. Select it with `withOptions({ account })`. */
  async create(body: types.CreateCompany, options?: KeyedRequestOptions): Promise<types.Company> {
    return (await this.call(operations.createCompany, { body }, options)).account;
  }

  /** The company, with its seats. */
  async get(company: CompanyRef, options?: RequestOptions): Promise<types.Company> {
    const parts = { path: { id: idOf(company) } };
    return (await this.call(operations.getCompany, parts, options)).account;
  }

  /** Changes the name. */
  async update(
    company: CompanyRef,
    changes: types.PatchCompany,
    options?: RequestOptions,
  ): Promise<types.Company> {
    const parts = { path: { id: idOf(company) }, body: changes };
    return (await this.call(operations.patchCompany, parts, options)).account;
  }

  /** The members, in the order in which they joined. */
  members(
    company: CompanyRef,
    query: Filters<types.ListMembersData> = {},
    options?: RequestOptions,
  ): Pages<types.Member, types.MembersResponse> {
    return this.offsetList(
      operations.listMembers,
      (page) => page.members,
      (member) => member.userId,
      query,
      { path: { id: idOf(company) }, options },
    );
  }

  /** Changes the role of a member, or whether the member can approve. */
  async updateMember(
    company: CompanyRef,
    member: MemberRef,
    changes: types.PatchMember,
    options?: RequestOptions,
  ): Promise<types.Member> {
    const parts = { path: pathOf(company, member), body: changes };
    return (await this.call(operations.patchMember, parts, options)).member;
  }

  /** Removes a member, or lets the user leave. Takes effect within one second. */
  async removeMember(
    company: CompanyRef,
    member: MemberRef,
    options?: RequestOptions,
  ): Promise<void> {
    await this.call(operations.deleteMember, { path: pathOf(company, member) }, options);
  }

  /** The open invitations, newest first, without their links. */
  invitations(
    company: CompanyRef,
    query: Filters<types.ListInvitationsData> = {},
    options?: RequestOptions,
  ): Pages<types.Invitation, types.InvitationsResponse> {
    return this.offsetList(
      operations.listInvitations,
      (page) => page.invitations,
      (invitation) => invitation.id,
      query,
      { path: { id: idOf(company) }, options },
    );
  }

  /**
   * Invites a person. Send `url` to them yourself: it is shown only here. If the connection breaks
   * before the response arrives, `url` is null: delete the invitation and create another.
   */
  invite(
    company: CompanyRef,
    body: types.CreateInvitation,
    options?: KeyedRequestOptions,
  ): Promise<types.InvitedResponse> {
    const parts = { path: { id: idOf(company) }, body };
    return this.call(operations.createInvitation, parts, options);
  }

  /** Deletes the invitation. Its link stops working. */
  async deleteInvitation(
    company: CompanyRef,
    invitation: InvitationRef,
    options?: RequestOptions,
  ): Promise<void> {
    const path = { id: idOf(company), invitationId: idOf(invitation) };
    await this.call(operations.deleteInvitation, { path }, options);
  }

  /** What the user is invited to. `token` is what follows `#` in the link. */
  async getInvitation(token: string, options?: RequestOptions): Promise<types.ReceivedInvitation> {
    return (await this.call(operations.getInvitation, { path: { token } }, options)).invitation;
  }

  /** Joins the company. `token` is what follows `#` in the link. */
  async acceptInvitation(token: string, options?: KeyedRequestOptions): Promise<types.Company> {
    const parts = { path: { token } };
    return (await this.call(operations.acceptInvitation, parts, options)).account;
  }
}

function pathOf(company: CompanyRef, member: MemberRef): { id: string; userId: string } {
  return { id: idOf(company), userId: typeof member === 'string' ? member : member.userId };
}
